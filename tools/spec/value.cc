#include "tools/spec/value.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "tools/spec/nearest.h"
#include "tools/spec/options.h"

namespace muster::spec {

absl::Status Value::error(std::string_view message) const {
  std::string out =
      at_.Mark().is_null() ? option_of_path(path_) : absl::StrCat(source_->file, ":", at_.Mark().line + 1);
  out.append(": ").append(message);
  return absl::InvalidArgumentError(out);
}

absl::Status Value::planned(std::string_view what) const {
  return error(absl::StrCat("'", std::string(what), "' is planned and not served yet by this release"));
}

absl::Status Value::text(std::string* out) const {
  if (!node_.IsScalar())
    return error(absl::StrCat("'", key_, "' must be one value, not ",
                              node_.IsMap()        ? "a map"
                              : node_.IsSequence() ? "a list"
                                                   : "empty"));
  *out = node_.Scalar();
  return absl::OkStatus();
}

absl::Status Value::boolean(bool* out) const {
  std::string word;
  if (absl::Status bad = text(&word); !bad.ok()) return bad;
  if (word != "true" && word != "false") return error(absl::StrCat("'", key_, "' must be true or false"));
  *out = word == "true";
  return absl::OkStatus();
}

absl::Status Value::integer(int64_t least, int64_t most, int64_t* out) const {
  std::string word;
  if (absl::Status bad = text(&word); !bad.ok()) return bad;
  const absl::StatusOr<int64_t> number = parse_integer(word, least, most);
  if (!number.ok()) return located(*this, number.status());
  *out = *number;
  return absl::OkStatus();
}

absl::Status Value::duration_ms(int64_t* out) const {
  return read_quantity(*this, parse_duration_ms, out);
}

absl::Status Value::texts(std::vector<std::string>* out) const {
  out->clear();
  if (!is_list()) {
    out->emplace_back();
    return text(&out->back());
  }
  return each_element([&](const Value& element) {
    out->emplace_back();
    return element.text(&out->back());
  });
}

absl::Status Value::each(std::string_view what, const std::function<absl::Status(const Value&)>& read) const {
  if (!is_map())
    return error(absl::StrCat(path_.empty() ? "a job" : absl::StrCat("'", key_, "'"), " must be a map, ",
                              std::string(what)));
  std::set<std::string> seen;
  for (const auto& pair : node_) {
    if (!pair.first.IsScalar()) return error("a key must be one word");
    const std::string name = pair.first.Scalar();
    // The options' values have no line of their own; their keys may be the file's.
    const Value value(source_, path_.empty() ? name : absl::StrCat(path_, ".", name), name, pair.second,
                      pair.second.Mark().is_null() ? pair.second : pair.first);
    if (!seen.insert(name).second) return value.error(absl::StrCat("'", name, "' is given twice"));
    if (absl::Status bad = read(value); !bad.ok()) return bad;
  }
  return absl::OkStatus();
}

absl::Status Value::each_element(const std::function<absl::Status(const Value&)>& read) const {
  if (!is_list()) return error(absl::StrCat("'", key_, "' must be a list"));
  for (const YAML::Node& element : node_) {
    if (absl::Status bad = read(Value(source_, path_, key_, element, element)); !bad.ok()) return bad;
  }
  return absl::OkStatus();
}

absl::Status Value::unknown_key(const std::vector<std::string>& known) const {
  return error(absl::StrCat("unknown key '", key_, "'", did_you_mean(key_, known)));
}

absl::Status read_quantity(const Value& value, ParseQuantity parse, int64_t* out) {
  std::string text;
  if (absl::Status bad = value.text(&text); !bad.ok()) return bad;
  const absl::StatusOr<int64_t> number = parse(text);
  if (!number.ok()) return located(value, number.status());
  *out = *number;
  return absl::OkStatus();
}

absl::Status not_yaml(const std::string& file, const YAML::Exception& error) {
  const std::string line = error.mark.is_null() ? "" : absl::StrCat(":", error.mark.line + 1);
  return absl::InvalidArgumentError(absl::StrCat(file, line, ": not YAML: ", error.msg));
}

absl::Status located(const Value& value, const absl::Status& status) {
  if (status.ok()) return status;
  return value.error(value.by_option() ? std::string(status.message())
                                       : absl::StrCat("'", value.key(), "': ", status.message()));
}

}  // namespace muster::spec
