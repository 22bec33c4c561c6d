// Which of a line of forked processes this is.
#pragma once

namespace phonebit::engine::threads {

/// Counts the forks between the first process that asked and this one. A child has a copy of all objects, but
/// of no thread: what an object shares with threads is only good in the generation that started them.
unsigned fork_generation();

}  // namespace phonebit::engine::threads
