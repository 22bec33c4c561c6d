#include "cpu/level_inputs.h"

#include <limits>
#include <utility>

#include "backend/host_buffers.h"
#include "backend/level_model.h"

namespace phonebit::engine::cpu {

namespace {

/// The network's own limits were checked at load.
Options without_limits() {
  Options options;
  options.max_memory_bytes = std::numeric_limits<uint64_t>::max();
  return options;
}

}  // namespace

struct LevelInputs::Input {
  Input(const loader::Tensor& tensor, const Preprocessing& rule, const Isa& isa,
        std::shared_ptr<threads::ThreadPool> pool)
      : level_model(tensor, rule),
        executor(level_model.model(), isa, without_limits(), std::move(pool)),
        values(tensor.bytes(), "network inputs") {}

  LevelModel level_model;
  Executor executor;
  memory::AlignedBuffer values;
};

LevelInputs::LevelInputs(const loader::Model& model, const Isa& isa,
                         std::shared_ptr<threads::ThreadPool> pool)
    : model_(model), isa_(isa), pool_(std::move(pool)), inputs_(model.inputs.size()) {}

LevelInputs::~LevelInputs() = default;

void LevelInputs::prepare(const std::vector<InputBuffer>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].is_levels && !inputs_[i])
      inputs_[i] =
          std::make_unique<Input>(model_.tensor(model_.inputs[i]), *level_rule(model_, i), isa_, pool_);
}

const std::byte* LevelInputs::image(const InputBuffer& buffer, size_t input, int image,
                                    const Cancellation& cancellation) {
  const loader::Tensor& tensor = model_.tensor(model_.inputs[input]);
  if (!buffer.is_levels) return image_of(buffer, tensor.bytes(), image);
  Input& own = *inputs_[input];
  const std::byte* const levels = image_of(buffer, static_cast<size_t>(tensor.elements()), image);
  std::byte* const values = own.values.data();
  own.executor.bind(&levels, &values);
  own.executor.run_image(cancellation, nullptr);
  return values;
}

}  // namespace phonebit::engine::cpu
