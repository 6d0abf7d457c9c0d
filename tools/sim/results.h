// What a simulation came to, as JSON (schema 1), and whether it is what the scenario expects.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/json.h"
#include "tools/sim/world.h"

namespace muster::sim {

// `cpu_s`: of the whole simulation.
tools::Json results_json(const World& world, double cpu_s);

// One line for each expectation that does not hold: where it stands, what was expected and what is.
std::vector<std::string> unmet(const std::vector<Expectation>& expect, const tools::Json& results);

}  // namespace muster::sim
