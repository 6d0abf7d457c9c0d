#include "storage/opened_base.h"

#include "muster/v1/record.pb.h"

namespace muster::storage {

int64_t opened_base(std::string_view first_value) {
  v1::Record record;
  if (!record.ParseFromArray(first_value.data(), static_cast<int>(first_value.size()))) return 0;
  if (!record.has_log_opened() || record.log_opened().base() < 0) return 0;
  return record.log_opened().base();
}

}  // namespace muster::storage
