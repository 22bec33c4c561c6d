// check_plan accepts what can be executed and refuses the rest, in the words of the cases that it shares with
// phonebit.planner.verify_plan (tests/plans/README.md).
//
// Usage: test_plan_check NETWORKS CASES.txt ...
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "analysis/plan_check.h"
#include "loader/loader.h"
#include "types/error.h"

namespace {

using phonebit::engine::Error;
using phonebit::engine::ErrorCode;
using phonebit::engine::ExecutionPlan;
using phonebit::engine::PlannedPart;
using phonebit::engine::loader::Model;

int failures = 0;

const Model& model_of(const std::string& path) {
  static std::map<std::string, Model> models;
  const auto found = models.find(path);
  if (found != models.end()) return found->second;
  return models
      .emplace(path, phonebit::engine::loader::load_model(phonebit::engine::loader::FileBytes::of_path(path)))
      .first->second;
}

/// The text of the refusal; empty: the plan is valid.
std::string problem_of(const Model& model, const ExecutionPlan& plan) {
  try {
    phonebit::engine::analysis::check_plan(model, plan);
    return "";
  } catch (const Error& error) {
    return error.code() == ErrorCode::input ? error.what() : std::string("wrong code: ") + error.what();
  }
}

void judge(const std::string& name, const std::string& problem, bool is_valid, const std::string& words) {
  const bool is_right = is_valid ? problem.empty() : problem.find(words) != std::string::npos;
  if (is_right && (is_valid || !problem.empty())) return;
  ++failures;
  std::fprintf(stderr, "FAIL %s: expected '%s', got '%s'\n", name.c_str(), is_valid ? "valid" : words.c_str(),
               problem.c_str());
}

PlannedPart read_part(std::istringstream& line) {
  PlannedPart planned{};
  int processor = -1;
  line >> planned.stage >> processor >> planned.layer >> planned.part.row_begin >> planned.part.row_end >>
      planned.part.channel_begin >> planned.part.channel_end;
  planned.processor = static_cast<phonebit::engine::Processor>(processor);
  return planned;
}

int run_cases(const std::string& networks, const char* path) {
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
    judge(name, problem_of(model_of(networks + "/" + network + ".pbit"), plan), key == "valid", rest);
  }
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    const int count = run_cases(argv[1], argv[i]);
    if (count == 0) ++failures;
    std::printf("%s: %d cases\n", argv[i], count);
  }
  if (argc < 3) ++failures;
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
