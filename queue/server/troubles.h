// What is wrong now, one line a part ("log", "store", …): shown by GetStatus and in health. Any thread.
#pragma once

#include <map>
#include <mutex>
#include <string>

namespace muster::server {

class Troubles {
 public:
  // An empty text: the part is well again. True: something changed.
  bool set(const std::string& part, const std::string& text) {
    std::lock_guard lock(mutex_);
    if (text.empty()) return texts_.erase(part) > 0;
    std::string& known = texts_[part];
    if (known == text) return false;
    known = text;
    return true;
  }

  // All of them, "" when all is well.
  std::string text() const {
    std::lock_guard lock(mutex_);
    std::string out;
    for (const auto& [part, text] : texts_) out += (out.empty() ? "" : "; ") + text;
    return out;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> texts_;
};

}  // namespace muster::server
