// Programs and kernels of Vulkan: shader modules, pipelines, descriptors.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "vulkan/logical_device.h"
#include "vulkan/memory.h"
#include "vulkan/module.h"

namespace phonebit::engine::vulkan {

/// A module with the pipelines made from it.
class Shader {
 public:
  using Size = std::array<uint32_t, 3>;

  Shader(std::shared_ptr<LogicalDevice> device, const std::string& binary);
  ~Shader();
  Shader(const Shader&) = delete;
  Shader& operator=(const Shader&) = delete;

  const Module& module() const { return module_; }
  const LogicalDevice& device() const { return *device_; }
  VkDescriptorSetLayout set_layout() const { return set_layout_; }
  VkPipelineLayout layout() const { return layout_; }
  /// For work-groups of a size, which the driver compiles on first use. Thread-safe. Throws Error(device).
  VkPipeline pipeline(const Size& group_size);

 private:
  void make_layouts();
  VkPipeline make_pipeline(const Size& group_size) const;

  std::shared_ptr<LogicalDevice> device_;
  Module module_;
  VkShaderModule shader_{};
  VkDescriptorSetLayout set_layout_{};
  VkPipelineLayout layout_{};
  std::mutex mutex_;  // of pipelines_
  std::map<Size, VkPipeline> pipelines_;
};

class Kernel final : public gpu::Kernel {
 public:
  explicit Kernel(std::shared_ptr<Shader> shader)
      : shader_(std::move(shader)),
        numbers_(shader_->module().push_bytes),
        buffers_(shader_->module().bindings) {}

  void bind(unsigned position, int value) override;
  void bind(unsigned position, const gpu::DeviceMemory& memory) override;
  size_t max_group_size() const override { return shader_->device().physical().max_work_group_size; }

  Shader& shader() const { return *shader_; }
  const std::shared_ptr<Shader>& kept_shader() const { return shader_; }
  const std::vector<std::byte>& numbers() const { return numbers_; }
  const std::vector<VkDescriptorBufferInfo>& buffers() const { return buffers_; }

 private:
  const Module::Argument& argument(unsigned position, Module::Argument::Kind kind) const;

  std::shared_ptr<Shader> shader_;
  std::vector<std::byte> numbers_;
  std::vector<VkDescriptorBufferInfo> buffers_;
};

class Program final : public gpu::Program {
 public:
  Program(std::shared_ptr<LogicalDevice> device, std::string binary)
      : binary_(std::move(binary)), shader_(std::make_shared<Shader>(std::move(device), binary_)) {}

  std::unique_ptr<gpu::Kernel> kernel(const gpu::ProgramSource& source) const override;
  std::string binary() const override { return binary_; }

 private:
  std::string binary_;
  std::shared_ptr<Shader> shader_;
};

}  // namespace phonebit::engine::vulkan
