#include "tools/cli/args.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "tools/spec/nearest.h"
#include "tools/spec/quantity.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

// The subcommand that the arguments went into.
const CLI::App& innermost(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + " " + app.get_name();
}

std::string parent_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? "" : full_name(*app.get_parent());
}

int explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& inner = innermost(app);
  const std::vector<std::string> left = app.remaining(true);
  const bool mistyped = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !left.empty() &&
                        !inner.get_subcommands([](const CLI::App*) { return true; }).empty();
  if (mistyped || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::string word = left.empty() ? "" : left.front().substr(0, left.front().find('='));
    const char* what = word.starts_with("-") ? "unknown option '" : "unexpected argument '";
    return usage_error(inner, what + word + "'" + spec::did_you_mean(word, option_names(inner)));
  }
  return usage_error(inner, error.what());
}

// CLI11's help without what the messages say anyway.
class Help : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 || option->get_type_name().empty() ? ""
                                                                           : " " + option->get_type_name();
  }
};

}  // namespace

Arguments::Arguments(const std::string& about, const std::string& name) : CLI::App(about, name) {
  auto help = std::make_shared<Help>();
  help->column_width(34);
  formatter(help);
}

void add_server(CLI::App& app, Common* common) {
  const char* set = std::getenv("MUSTER_SERVER");
  common->server = set != nullptr && *set != 0 ? set : "127.0.0.1:7070";
  app.add_option("--server", common->server, "the server's HOST:PORT; default: $MUSTER_SERVER")
      ->type_name("HOST:PORT");
}

void add_output(CLI::App& app, Common* common) {
  const auto set = [common](const std::string& form) {
    if (form != "text" && form != "json") throw CLI::ValidationError("-o " + form, "must be text or json");
    common->json = form == "json";
  };
  app.add_option_function<std::string>("-o,--output", set, "json: objects with `schema: 1`, lists one a line")
      ->type_name("text|json");
}

int usage_error(const CLI::App& app, const std::string& message) {
  const std::string name = full_name(app);
  std::cerr << name << ": " << message << " (`" << name << " --help` says more)\n";
  return kUsage;
}

std::optional<int> parse(CLI::App& app, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    std::cout << innermost(app).help(parent_name(innermost(app)));
    return kDone;
  } catch (const CLI::ParseError& error) {
    return explain(app, error);
  }
  return std::nullopt;
}

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  return parse(app, std::vector<std::string>(argv + 1, argv + argc));
}

CLI::Option* add_duration(CLI::App& app, const std::string& name, int64_t* ms, const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [ms, name](const std::string& text) {
            const auto parsed = spec::parse_duration_ms(text);
            if (!parsed.ok()) throw CLI::ValidationError(name, std::string(parsed.status().message()));
            *ms = *parsed;
          },
          help)
      ->type_name("TIME");
}

}  // namespace muster::tools
