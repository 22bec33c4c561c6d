#include "analysis/plan_check.h"

#include <algorithm>
#include <string>

#include "analysis/op_part.h"
#include "analysis/op_tensors.h"
#include "types/fail.h"

namespace phonebit::engine::analysis {
namespace {

using loader::Model;
using loader::Op;
using loader::Tensor;

constexpr int kNobody = -1;  // no layer, no stage
constexpr const char* kAdvice = "; plan the network again";

const char* name_of(Processor processor) { return processor == Processor::gpu ? "gpu" : "cpu"; }

std::string text_of(const OutputPart& part) {
  return format_text("rows %d:%d of channels %d:%d", part.row_begin, part.row_end, part.channel_begin,
                     part.channel_end);
}

bool overlap(const OutputPart& a, const OutputPart& b) {
  return std::max(a.row_begin, b.row_begin) < std::min(a.row_end, b.row_end) &&
         std::max(a.channel_begin, b.channel_begin) < std::min(a.channel_end, b.channel_end);
}

int64_t area(const OutputPart& part) {
  return int64_t{part.row_end - part.row_begin} * (part.channel_end - part.channel_begin);
}

class PlanCheck {
 public:
  PlanCheck(const Model& model, const ExecutionPlan& plan)
      : model_(model),
        plan_(plan),
        stage_(model.ops.size(), kNobody),
        parts_(model.ops.size()),
        writer_(model.tensors.size(), kNobody),
        last_read_(model.tensors.size(), kNobody) {
    for (size_t i = 0; i < model.ops.size(); ++i) {
      for (const int tensor : tensors_written(model.ops[i]))
        writer_[static_cast<size_t>(tensor)] = static_cast<int>(i);
    }
  }

  void run() {
    int last_stage = kNobody;
    for (size_t i = 0; i < plan_.parts.size(); ++i) {
      const PlannedPart& planned = plan_.parts[i];
      check_place(i, planned, last_stage);
      check_cut(planned);
      last_stage = planned.stage;
      stage_[static_cast<size_t>(planned.layer)] = planned.stage;
      part_of(planned.layer, planned.processor) = &planned;
    }
    for (size_t i = 0; i < stage_.size(); ++i) {
      if (stage_[i] == kNobody)
        fail(ErrorCode::input, "plan: %s is in no stage (expected each layer in one)%s",
             describe(static_cast<int>(i)).c_str(), kAdvice);
    }
    check_reads();
    for (size_t i = 0; i < stage_.size(); ++i) check_cover(static_cast<int>(i));
  }

 private:
  /// What each processor computes of a layer; null: nothing.
  struct Parts {
    const PlannedPart* of[2] = {nullptr, nullptr};
  };

  const Op& op(int layer) const { return model_.ops[static_cast<size_t>(layer)]; }

  const PlannedPart*& part_of(int layer, Processor processor) {
    return parts_[static_cast<size_t>(layer)].of[static_cast<int>(processor)];
  }

  std::string describe(int layer) const {
    return format_text("layer %d '%s' (%s)", layer, op(layer).name.c_str(), op(layer).traits().name);
  }

  std::string describe(const PlannedPart& planned) const {
    return format_text("stage %d, %s, %s", planned.stage, name_of(planned.processor),
                       describe(planned.layer).c_str());
  }

  /// Stage, processor and layer.
  void check_place(size_t number, const PlannedPart& planned, int last_stage) {
    if (planned.processor != Processor::cpu && planned.processor != Processor::gpu)
      fail(ErrorCode::input, "plan: part %zu: processor (expected 0 or 1, got %d)%s", number,
           static_cast<int>(planned.processor), kAdvice);
    if (planned.layer < 0 || static_cast<size_t>(planned.layer) >= model_.ops.size())
      fail(ErrorCode::input, "plan: part %zu: layer %d does not exist (expected < %zu)%s", number,
           planned.layer, model_.ops.size(), kAdvice);
    const std::string where = describe(planned);
    const bool is_first = last_stage == kNobody;
    if (planned.stage != last_stage + 1 && (is_first || planned.stage != last_stage))
      fail(ErrorCode::input, "plan: %s: stages do not count up from 0 without gaps (expected %s%d)%s",
           where.c_str(), is_first ? "" : format_text("%d or ", last_stage).c_str(), last_stage + 1, kAdvice);
    const int stage = stage_[static_cast<size_t>(planned.layer)];
    if (stage != kNobody && stage != planned.stage)
      fail(ErrorCode::input, "plan: %s: the layer is in stage %d, too (expected one stage)%s", where.c_str(),
           stage, kAdvice);
    if (part_of(planned.layer, planned.processor) != nullptr)
      fail(ErrorCode::input, "plan: %s: the processor has two parts of the layer (expected one)%s",
           where.c_str(), kAdvice);
  }

  /// The part is inside the output and cut where its layer can be.
  void check_cut(const PlannedPart& planned) const {
    const OutputPart& part = planned.part;
    const OutputPart whole = whole_part(model_, op(planned.layer));
    const std::string where = describe(planned);
    const auto refuse = [&](const char* side, int begin, int end, const std::string& problem) {
      fail(ErrorCode::input, "plan: %s: %s %d:%d%s%s", where.c_str(), side, begin, end, problem.c_str(),
           kAdvice);
    };
    const auto check_side = [&](const char* side, int begin, int end, int limit) {
      if (begin < 0 || begin >= end || end > limit)
        refuse(side, begin, end, format_text(" do not exist (expected some of 0:%d)", limit));
    };
    check_side("rows", part.row_begin, part.row_end, whole.row_end);
    check_side("channels", part.channel_begin, part.channel_end, whole.channel_end);
    if (part.row_end - part.row_begin < whole.row_end && !can_split_rows(model_, op(planned.layer)))
      refuse("rows", part.row_begin, part.row_end,
             ": this op cannot be cut between rows (expected all rows)");
    if (part.channel_end - part.channel_begin == whole.channel_end) return;
    if (!can_split_channels(model_, op(planned.layer)))
      refuse("channels", part.channel_begin, part.channel_end,
             ": this op cannot be cut between channels (expected all channels)");
    for (const int cut : {part.channel_begin, part.channel_end}) {
      if (cut % kChannelGrain != 0 && cut != whole.channel_end)
        refuse("channels", part.channel_begin, part.channel_end,
               format_text(": a cut (expected a multiple of %d, or %d, got %d)", kChannelGrain,
                           whole.channel_end, cut));
    }
  }

  /// Each part reads what is complete, or what its processor wrote before it in the stage.
  void check_reads() {
    for (const PlannedPart& planned : plan_.parts) {
      const std::vector<int> read = tensors_read(op(planned.layer));
      for (size_t i = 0; i < read.size(); ++i) {
        check_read(planned, read[i], part_read(model_, op(planned.layer), i, planned.part));
        int& last = last_read_[static_cast<size_t>(read[i])];
        last = std::max(last, planned.stage);
      }
    }
  }

  void check_read(const PlannedPart& planned, int tensor, const OutputPart& read) {
    const int writer = writer_[static_cast<size_t>(tensor)];
    if (writer == kNobody || read.row_begin >= read.row_end) return;  // an input of the network; padding only
    const int stage = stage_[static_cast<size_t>(writer)];
    if (stage < planned.stage) return;
    const auto refuse = [&](const std::string& problem) {
      fail(ErrorCode::input, "plan: %s: reads rows %d:%d of '%s', %s%s", describe(planned).c_str(),
           read.row_begin, read.row_end, model_.tensor(tensor).name.c_str(), problem.c_str(), kAdvice);
    };
    const PlannedPart* const mine = part_of(writer, planned.processor);
    if (mine == nullptr || mine >= &planned)  // parts of one array: later in the plan
      refuse(
          format_text("which %s writes in stage %d (expected an earlier stage, or the same processor before "
                      "it in its stage)",
                      describe(writer).c_str(), stage));
    const OutputPart& part = mine->part;
    if (read.row_begin < part.row_begin || read.row_end > part.row_end)
      refuse(format_text("of which its processor has other rows in the stage (got %d:%d)", part.row_begin,
                         part.row_end));
    if (read.channel_begin < part.channel_begin || read.channel_end > part.channel_end)
      refuse(
          format_text("of which its processor has not all channels in the stage (expected %d:%d, got %d:%d)",
                      read.channel_begin, read.channel_end, part.channel_begin, part.channel_end));
  }

  /// What others read later, or the network gives, is computed exactly once.
  void check_cover(int layer) const {
    if (!is_published(layer)) return;
    const Parts& parts = parts_[static_cast<size_t>(layer)];
    const OutputPart whole = whole_part(model_, op(layer));
    const std::string where =
        format_text("plan: %s, which later stages or the network's outputs need", describe(layer).c_str());
    if (parts.of[0] != nullptr && parts.of[1] != nullptr && overlap(parts.of[0]->part, parts.of[1]->part))
      fail(ErrorCode::input, "%s: both processors compute a part of it twice (expected once)%s",
           where.c_str(), kAdvice);
    int64_t covered = 0;
    std::string got;
    for (const PlannedPart* const planned : parts.of) {
      if (planned == nullptr) continue;
      covered += area(planned->part);
      got += (got.empty() ? "" : " and ") + text_of(planned->part);
    }
    if (covered != area(whole))
      fail(ErrorCode::input, "%s: nobody computes a part of it (expected %s, got %s)%s", where.c_str(),
           text_of(whole).c_str(), got.c_str(), kAdvice);
  }

  bool is_published(int layer) const {
    const std::vector<int> written = tensors_written(op(layer));
    return std::any_of(written.begin(), written.end(), [&](int tensor) {
      const bool is_output =
          std::find(model_.outputs.begin(), model_.outputs.end(), tensor) != model_.outputs.end();
      return is_output || last_read_[static_cast<size_t>(tensor)] > stage_[static_cast<size_t>(layer)];
    });
  }

  const Model& model_;
  const ExecutionPlan& plan_;
  std::vector<int> stage_;      // of each layer
  std::vector<Parts> parts_;    // of each layer
  std::vector<int> writer_;     // the layer that writes each tensor
  std::vector<int> last_read_;  // the last stage that reads each tensor
};

}  // namespace

void check_plan(const Model& model, const ExecutionPlan& plan) { PlanCheck(model, plan).run(); }

}  // namespace phonebit::engine::analysis
