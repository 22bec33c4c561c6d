// check_plan accepts what can be executed and refuses the rest, in the words of the cases that it shares with
// phonebit.planner.verify_plan (tests/plans/README.md).
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "analysis/plan_check.h"
#include "doctest_strings.h"
#include "loader/loader.h"
#include "types/error.h"

namespace {

using namespace phonebit::engine;
using loader::Model;

const std::string kTests = PHONEBIT_SOURCE_DIR "/tests/";

const Model& model_of(const std::string& path) {
  static std::map<std::string, Model> models;
  const auto found = models.find(path);
  if (found != models.end()) return found->second;
  return models.emplace(path, loader::load_model(loader::FileBytes::of_path(path))).first->second;
}

/// The text of the refusal; empty: the plan is valid.
std::string problem_of(const Model& model, const ExecutionPlan& plan) {
  try {
    analysis::check_plan(model, plan);
    return "";
  } catch (const Error& error) {
    return error.code() == ErrorCode::input ? error.what() : std::string("wrong code: ") + error.what();
  }
}

PlannedPart read_part(std::istringstream& line) {
  PlannedPart planned{};
  int processor = -1;
  line >> planned.stage >> processor >> planned.layer >> planned.part.row_begin >> planned.part.row_end >>
      planned.part.channel_begin >> planned.part.channel_end;
  planned.processor = static_cast<Processor>(processor);
  return planned;
}

void run_cases(const std::string& path) {
  std::ifstream file(path);
  int count = 0;
  std::string text, name, network;
  ExecutionPlan plan;
  while (std::getline(file, text)) {
    std::istringstream line(text);
    std::string key, rest;
    line >> key;
    if (key == "part") {
      plan.parts.push_back(read_part(line));
      continue;
    }
    std::getline(line >> std::ws, rest);
    if (key == "case") name = rest;
    if (key == "network") {
      network = rest;
      plan.parts.clear();
    }
    if (key != "valid" && key != "refused") continue;
    ++count;
    const std::string problem = problem_of(model_of(kTests + "golden/v1/" + network + ".pbit"), plan);
    INFO(path, ": ", name);
    CHECK(problem.empty() == (key == "valid"));
    if (key == "refused") CHECK(problem.c_str() == doctest::Contains(rest.c_str()));
  }
  CHECK(count > 0);
}

TEST_CASE("plans of every rule") { run_cases(kTests + "plans/rules.txt"); }
TEST_CASE("random plans") { run_cases(kTests + "plans/random.txt"); }

}  // namespace
