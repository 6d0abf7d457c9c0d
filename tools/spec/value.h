// One value of a job file or of the options beside it, and where it stands: what the schema's readers read
// from. Errors are INVALID_ARGUMENT "job.yaml:7: …", or "--gpu: …" for what an option gave.
//
// Internal to tools/spec: the only header that names yaml-cpp.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "tools/spec/quantity.h"

namespace muster::spec {

// What the messages call the file, and the directory that relative paths in it are seen from.
struct Source {
  std::string file;
  std::string directory;
};

class Value {
 public:
  Value(const Source* source, std::string path, std::string key, YAML::Node node, YAML::Node at)
      : source_(source),
        path_(std::move(path)),
        key_(std::move(key)),
        node_(std::move(node)),
        at_(std::move(at)) {}

  const std::string& key() const { return key_; }
  const Source& source() const { return *source_; }
  bool by_option() const { return at_.Mark().is_null(); }
  bool is_scalar() const { return node_.IsScalar(); }
  bool is_list() const { return node_.IsSequence(); }
  bool is_map() const { return node_.IsMap(); }
  size_t size() const { return node_.size(); }

  absl::Status error(std::string_view message) const;
  // "'secrets' is planned and not served yet by this release".
  absl::Status planned(std::string_view what) const;

  // Each writes its last argument; the error says what the value should have been.
  absl::Status text(std::string* out) const;
  absl::Status boolean(bool* out) const;
  absl::Status integer(int64_t least, int64_t most, int64_t* out) const;
  absl::Status duration_ms(int64_t* out) const;
  // A list of scalars, or one scalar that stands for a list of one.
  absl::Status texts(std::vector<std::string>* out) const;
  // In the file's order; a key given twice is an error. `what` says what the map is for, e.g. "KEY: VALUE".
  absl::Status each(std::string_view what, const std::function<absl::Status(const Value&)>& read) const;
  absl::Status each_element(const std::function<absl::Status(const Value&)>& read) const;
  // The error of a key that the map does not have.
  absl::Status unknown_key(const std::vector<std::string>& known) const;

 private:
  const Source* source_;
  std::string path_;  // "resources.gpu"
  std::string key_;   // its last step; may have dots of its own
  YAML::Node node_;
  YAML::Node at_;  // the key, else the value: what the line is taken from
};

// One scalar by its parser (quantity.h); a parser's error is given its place.
absl::Status read_quantity(const Value& value, ParseQuantity parse, int64_t* out);

// "job.yaml:7: not YAML: …".
absl::Status not_yaml(const std::string& file, const YAML::Exception& error);

// Scalars by what reads them, for error messages: adds where it was to a parser's error.
absl::Status located(const Value& value, const absl::Status& status);

}  // namespace muster::spec
