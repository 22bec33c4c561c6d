/* Plugin of qemu-user: loads that miss modelled caches, by function, written to a file when the program ends.
 *
 * Arguments: out=FILE, and for each core cache=L1_SETS/WAYS/L2_SETS/WAYS, lines of 64 bytes. Least recently used
 * replacement; stores fill caches and are not counted. A line whose predecessor was one of the last misses belongs to a
 * stream, which cores prefetch.
 * A line a function: symbol, and for each core loads from L2, from memory, and from memory as part of a stream. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t PluginId;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { no_registers = 0, loads_and_stores = 3, max_cores = 8, streams = 16 };
enum { from_l2, from_memory, streamed, kinds };

extern void qemu_plugin_register_vcpu_tb_trans_cb(PluginId, void (*)(PluginId, struct qemu_plugin_tb*));
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn*,
                                             void (*)(unsigned, uint32_t, uint64_t, void*), int, int, void*);
extern void qemu_plugin_register_atexit_cb(PluginId, void (*)(PluginId, void*), void*);
extern _Bool qemu_plugin_mem_is_store(uint32_t);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
extern struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb*, size_t);
extern const char* qemu_plugin_insn_symbol(const struct qemu_plugin_insn*);

int qemu_plugin_version = 1;

struct Cache {
  int sets, ways;
  uint64_t* lines; /* of a set, the last used first */
};
struct Core {
  struct Cache l1, l2;
  uint64_t missed[streams];
  int next;
};
struct Function {
  char* symbol;
  uint64_t counts[max_cores][kinds];
  struct Function* next;
};

static struct Core cores[max_cores];
static int core_count;
static struct Function* functions;
static FILE* output;

static int has(struct Cache* cache, uint64_t line) {
  uint64_t* const set = cache->lines + line % cache->sets * cache->ways;
  uint64_t before = line;
  for (int i = 0; i < cache->ways; ++i) {
    const uint64_t here = set[i];
    set[i] = before;
    if (here == line) return 1;
    before = here;
  }
  return 0;
}

static int goes_on(struct Core* core, uint64_t line) {
  for (int i = 0; i < streams; ++i)
    if (core->missed[i] + 1 == line) return core->missed[i] = line, 1;
  core->missed[core->next++ % streams] = line;
  return 0;
}

static void on_access(unsigned vcpu, uint32_t kind, uint64_t address, void* function) {
  static uint64_t last;
  const uint64_t line = address / 64;
  (void)vcpu;
  if (line == last) return;
  last = line;
  for (int i = 0; i < core_count; ++i) {
    struct Core* const core = &cores[i];
    if (has(&core->l1, line)) continue;
    const int is_stream = goes_on(core, line), is_near = has(&core->l2, line);
    if (qemu_plugin_mem_is_store(kind) || (is_near && is_stream)) continue;
    ++((struct Function*)function)->counts[i][is_near ? from_l2 : is_stream ? streamed : from_memory];
  }
}

static void on_translation(PluginId id, struct qemu_plugin_tb* translated) {
  const char* symbol = qemu_plugin_insn_symbol(qemu_plugin_tb_get_insn(translated, 0));
  struct Function* function = functions;
  (void)id;
  if (!symbol || !*symbol) symbol = "?";
  while (function && strcmp(function->symbol, symbol)) function = function->next;
  if (!function) {
    function = calloc(1, sizeof *function);
    function->symbol = strdup(symbol);
    function->next = functions;
    functions = function;
  }
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(translated); ++i)
    qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(translated, i), on_access, no_registers,
                                     loads_and_stores, function);
}

static void on_exit_of_program(PluginId id, void* unused) {
  (void)id, (void)unused;
  for (const struct Function* function = functions; function; function = function->next) {
    fputs(function->symbol, output);
    for (int i = 0; i < core_count; ++i)
      for (int kind = 0; kind < kinds; ++kind)
        fprintf(output, " %llu", (unsigned long long)function->counts[i][kind]);
    fputc('\n', output);
  }
  fclose(output);
}

int qemu_plugin_install(PluginId id, const void* info, int count, char** arguments) {
  (void)info;
  for (int i = 0; i < count; ++i) {
    struct Core* const core = &cores[core_count];
    if (!strncmp(arguments[i], "out=", 4)) output = fopen(arguments[i] + 4, "w");
    if (core_count == max_cores || sscanf(arguments[i], "cache=%d/%d/%d/%d", &core->l1.sets, &core->l1.ways,
                                          &core->l2.sets, &core->l2.ways) != 4)
      continue;
    core->l1.lines = calloc((size_t)core->l1.sets * core->l1.ways, sizeof(uint64_t));
    core->l2.lines = calloc((size_t)core->l2.sets * core->l2.ways, sizeof(uint64_t));
    ++core_count;
  }
  if (!output) return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_atexit_cb(id, on_exit_of_program, NULL);
  return 0;
}
