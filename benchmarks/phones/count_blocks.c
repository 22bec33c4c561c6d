/* Plugin of qemu-user: how often each translated block ran, written to a file when the program ends.
 *
 * A line a block: executions, address, symbol ("?": none), and its instructions as hexadecimal words.
 * One thread only: the counters are not atomic. Declarations are those of the plugin interface 1 (qemu 4.2 to 8). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t PluginId;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { add_u64 = 0 };

extern void qemu_plugin_register_vcpu_tb_trans_cb(PluginId, void (*)(PluginId, struct qemu_plugin_tb*));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb*, int, void*, uint64_t);
extern void qemu_plugin_register_atexit_cb(PluginId, void (*)(PluginId, void*), void*);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb*);
extern struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb*, size_t);
extern const void* qemu_plugin_insn_data(const struct qemu_plugin_insn*);
extern const char* qemu_plugin_insn_symbol(const struct qemu_plugin_insn*);

int qemu_plugin_version = 1;

struct Block {
  uint64_t executions, address;
  char* symbol;
  size_t length;
  uint32_t* code;
  struct Block* next;
};

static struct Block* blocks;
static FILE* output;

/* A block that is translated again is a second entry: the reader adds them up. */
static void on_translation(PluginId id, struct qemu_plugin_tb* translated) {
  (void)id;
  struct Block* const block = calloc(1, sizeof *block);
  block->length = qemu_plugin_tb_n_insns(translated);
  block->address = qemu_plugin_tb_vaddr(translated);
  block->code = calloc(block->length, sizeof *block->code);
  for (size_t i = 0; i < block->length; ++i)
    memcpy(block->code + i, qemu_plugin_insn_data(qemu_plugin_tb_get_insn(translated, i)), 4);
  const char* const symbol = qemu_plugin_insn_symbol(qemu_plugin_tb_get_insn(translated, 0));
  block->symbol = strdup(symbol && *symbol ? symbol : "?");
  block->next = blocks;
  blocks = block;
  qemu_plugin_register_vcpu_tb_exec_inline(translated, add_u64, &block->executions, 1);
}

static void on_exit_of_program(PluginId id, void* unused) {
  (void)id, (void)unused;
  for (const struct Block* block = blocks; block; block = block->next) {
    if (!block->executions) continue;
    fprintf(output, "%llu %llx %s", (unsigned long long)block->executions, (unsigned long long)block->address, block->symbol);
    for (size_t i = 0; i < block->length; ++i) fprintf(output, " %08x", block->code[i]);
    fputc('\n', output);
  }
  fclose(output);
}

int qemu_plugin_install(PluginId id, const void* info, int count, char** arguments) {
  (void)info;
  for (int i = 0; i < count; ++i)
    if (!strncmp(arguments[i], "out=", 4)) output = fopen(arguments[i] + 4, "w");
  if (!output) return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_atexit_cb(id, on_exit_of_program, NULL);
  return 0;
}
