// The part of the Python face that makes workloads (bindings_draws.cpp).
#pragma once

#include <nanobind/nanobind.h>

namespace berthline {

void bind_draws(nanobind::module_& m);

}  // namespace berthline
