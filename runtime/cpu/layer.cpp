#include "cpu/layer.h"

#include "analysis/conv_shape.h"
#include "analysis/op_part.h"
#include "loader/validate.h"
#include "types/fail.h"

namespace phonebit::engine::cpu {

namespace {

/// In the order of ops::kOperators.
constexpr const MakeLayer* kMakers[] = {
#define PHONEBIT_MAKER(number, kind, ...) &LayersOf<format::OpKind::kind>::make,
    PHONEBIT_OPERATORS(PHONEBIT_MAKER)
#undef PHONEBIT_MAKER
};

void check_part(const loader::Model& model, size_t index, const OutputPart& part) {
  const loader::Op& op = model.ops[index];
  const OutputPart whole = analysis::whole_part(model, op);
  const bool has_all_rows = part.row_begin == 0 && part.row_end == whole.row_end;
  const bool has_all_channels = part.channel_begin == 0 && part.channel_end == whole.channel_end;
  const OutputPart words = analysis::whole_words(model, op, part);
  const bool has_whole_words =
      words.channel_begin == part.channel_begin && words.channel_end == part.channel_end;
  const bool is_inside = part.row_begin >= 0 && part.row_begin < part.row_end &&
                         part.row_end <= whole.row_end && part.channel_begin >= 0 &&
                         part.channel_begin < part.channel_end && part.channel_end <= whole.channel_end;
  if (is_inside && (has_all_rows || analysis::can_split_rows(model, op)) &&
      (has_all_channels || (analysis::can_split_channels(model, op) && has_whole_words)))
    return;
  fail(ErrorCode::internal,
       "%s: the CPU cannot compute rows %d to %d, channels %d to %d of %d rows, %d channels by itself",
       loader::describe_op(model, index).c_str(), part.row_begin, part.row_end, part.channel_begin,
       part.channel_end, whole.row_end, whole.channel_end);
}

}  // namespace

std::unique_ptr<Layer> make_layer(const BuildContext& context, size_t index) {
  return make_layer(context, index, analysis::whole_part(context.model, context.model.ops[index]));
}

std::unique_ptr<Layer> make_layer(const BuildContext& context, size_t index, const OutputPart& part) {
  check_part(context.model, index, part);
  const loader::Op& op = context.model.ops[index];
  return (*kMakers[static_cast<size_t>(op.kind) - 1])(context, op, part);
}

void run_layer(Layer& layer, threads::ThreadPool& pool, const Cancellation& cancellation) {
  const auto is_requested = [](const void* context) {
    return static_cast<const Cancellation*>(context)->is_requested();
  };
  const Stop stop{is_requested, &cancellation};
  const int phases = layer.phases();
  for (int phase = 0; phase < phases; ++phase)
    pool.parallel_for(layer.parts(phase), [&](int part) {
      if (!stop()) layer.run(phase, part, stop);
    });
}

}  // namespace phonebit::engine::cpu
