// Names for clang's thread-safety attributes; they expand to nothing elsewhere.
//
// Why this exists: what a lock guards is stated where the member is declared, and the clang build of the
// simulator refuses an access without it.
#pragma once

#include <holdfast/platform/abi.hpp>

#if defined(__clang__)
#define HOLDFAST_ANNOTATION(x) __attribute__((x))
#else
#define HOLDFAST_ANNOTATION(x)
#endif

#define HOLDFAST_CAPABILITY(name) HOLDFAST_ANNOTATION(capability(name))
#define HOLDFAST_SCOPED_CAPABILITY HOLDFAST_ANNOTATION(scoped_lockable)
#define HOLDFAST_GUARDED_BY(lock) HOLDFAST_ANNOTATION(guarded_by(lock))
#define HOLDFAST_REQUIRES(...) HOLDFAST_ANNOTATION(requires_capability(__VA_ARGS__))
#define HOLDFAST_REQUIRES_SHARED(...) HOLDFAST_ANNOTATION(requires_shared_capability(__VA_ARGS__))
#define HOLDFAST_ACQUIRE(...) HOLDFAST_ANNOTATION(acquire_capability(__VA_ARGS__))
#define HOLDFAST_ACQUIRE_SHARED(...) HOLDFAST_ANNOTATION(acquire_shared_capability(__VA_ARGS__))
#define HOLDFAST_RELEASE(...) HOLDFAST_ANNOTATION(release_capability(__VA_ARGS__))
#define HOLDFAST_RELEASE_SHARED(...) HOLDFAST_ANNOTATION(release_shared_capability(__VA_ARGS__))
#define HOLDFAST_RELEASE_GENERIC(...) HOLDFAST_ANNOTATION(release_generic_capability(__VA_ARGS__))
#define HOLDFAST_TRY_ACQUIRE(...) HOLDFAST_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define HOLDFAST_EXCLUDES(...) HOLDFAST_ANNOTATION(locks_excluded(__VA_ARGS__))
#define HOLDFAST_NO_ANALYSIS HOLDFAST_ANNOTATION(no_thread_safety_analysis)
