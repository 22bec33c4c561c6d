#include "vulkan/program.h"

#include <cstring>

#include "types/fail.h"

namespace phonebit::engine::vulkan {

Shader::Shader(std::shared_ptr<LogicalDevice> device, const std::string& binary)
    : device_(std::move(device)), module_(read_module(binary)) {
  if (module_.push_bytes > device_->physical().max_push_bytes)
    fail(ErrorCode::device, "kernel %s: its numbers take %u bytes, and %s has room for %u",
         module_.kernel.c_str(), module_.push_bytes, device_->physical().name.c_str(),
         device_->physical().max_push_bytes);
  VkShaderModuleCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  info.codeSize = module_.words.size() * sizeof(uint32_t);
  info.pCode = module_.words.data();
  check(device_->api().vkCreateShaderModule(device_->handle(), &info, nullptr, &shader_),
        "vkCreateShaderModule", module_.kernel.c_str());
  make_layouts();
}

Shader::~Shader() {
  const DeviceApi& api = device_->api();
  for (const auto& [size, pipeline] : pipelines_) api.vkDestroyPipeline(device_->handle(), pipeline, nullptr);
  api.vkDestroyPipelineLayout(device_->handle(), layout_, nullptr);
  api.vkDestroyDescriptorSetLayout(device_->handle(), set_layout_, nullptr);
  api.vkDestroyShaderModule(device_->handle(), shader_, nullptr);
}

void Shader::make_layouts() {
  std::vector<VkDescriptorSetLayoutBinding> bindings;
  for (const Module::Argument& argument : module_.arguments)
    if (argument.kind == Module::Argument::Kind::buffer)
      bindings.push_back(
          {argument.place, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  VkDescriptorSetLayoutCreateInfo set{};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set.bindingCount = static_cast<uint32_t>(bindings.size());
  set.pBindings = bindings.data();
  check(device_->api().vkCreateDescriptorSetLayout(device_->handle(), &set, nullptr, &set_layout_),
        "vkCreateDescriptorSetLayout", module_.kernel.c_str());
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, module_.push_bytes};
  VkPipelineLayoutCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.setLayoutCount = 1;
  info.pSetLayouts = &set_layout_;
  info.pushConstantRangeCount = module_.push_bytes > 0 ? 1 : 0;
  info.pPushConstantRanges = &range;
  check(device_->api().vkCreatePipelineLayout(device_->handle(), &info, nullptr, &layout_),
        "vkCreatePipelineLayout", module_.kernel.c_str());
}

VkPipeline Shader::pipeline(const Size& group_size) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = pipelines_.find(group_size);
  if (found != pipelines_.end()) return found->second;
  return pipelines_[group_size] = make_pipeline(group_size);
}

VkPipeline Shader::make_pipeline(const Size& group_size) const {
  if (module_.group_size[0] != 0 && module_.group_size != group_size)
    fail(ErrorCode::internal, "kernel %s: work-groups of %ux%ux%u, expected %ux%ux%u", module_.kernel.c_str(),
         group_size[0], group_size[1], group_size[2], module_.group_size[0], module_.group_size[1],
         module_.group_size[2]);
  VkSpecializationMapEntry entries[3];
  for (uint32_t i = 0; i < 3; ++i)
    entries[i] = {module_.group_size_ids[i], static_cast<uint32_t>(i * sizeof(uint32_t)), sizeof(uint32_t)};
  const VkSpecializationInfo constants = {3, entries, sizeof group_size, group_size.data()};
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.flags = VK_PIPELINE_CREATE_DISPATCH_BASE_BIT;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = shader_;
  info.stage.pName = module_.kernel.c_str();
  info.stage.pSpecializationInfo = module_.group_size[0] == 0 ? &constants : nullptr;
  info.layout = layout_;
  VkPipeline made{};
  check(
      device_->api().vkCreateComputePipelines(device_->handle(), VkPipelineCache{}, 1, &info, nullptr, &made),
      "vkCreateComputePipelines", module_.kernel.c_str());
  return made;
}

const Module::Argument& Kernel::argument(unsigned position, Module::Argument::Kind kind) const {
  static const Module::Argument unused;
  const Module& module = shader_->module();
  if (position >= module.arguments.size()) return unused;
  const Module::Argument& found = module.arguments[position];
  if (found.kind != kind && found.kind != Module::Argument::Kind::unused)
    fail(ErrorCode::internal, "kernel %s: argument %u is of another kind", module.kernel.c_str(), position);
  return found;
}

void Kernel::bind(unsigned position, int value) {
  const Module::Argument& found = argument(position, Module::Argument::Kind::number);
  if (found.kind != Module::Argument::Kind::unused)
    std::memcpy(numbers_.data() + found.place, &value, sizeof value);
}

void Kernel::bind(unsigned position, const gpu::DeviceMemory& memory) {
  const Module::Argument& found = argument(position, Module::Argument::Kind::buffer);
  const Memory& bound = own(memory);
  if (found.kind != Module::Argument::Kind::unused)
    buffers_[found.place] = {bound.buffer()->handle(), bound.offset(), (bound.bytes() + 3) / 4 * 4};
}

std::unique_ptr<gpu::Kernel> Program::kernel(const gpu::ProgramSource& source) const {
  const Module& module = shader_->module();
  if (module.kernel.substr(0, module.kernel.find(' ')) != source.kernel)
    fail(ErrorCode::device, "the program of kernel %s has kernel %s", source.kernel.c_str(),
         module.kernel.c_str());
  if (module.group_size[0] != 0) shader_->pipeline(module.group_size);
  return std::make_unique<Kernel>(shader_);
}

}  // namespace phonebit::engine::vulkan
