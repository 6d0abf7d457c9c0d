#include "tools/cli/submitter.h"

#include <openssl/rand.h>

#include <cstdlib>
#include <iostream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace muster::tools {
namespace {

constexpr int kRequestJobsMax = 1000;
constexpr size_t kRequestBytesMax = 3 << 20;  // gRPC servers take 4 MiB unless told otherwise

struct Batch {
  v1::SubmitRequest request;
  std::vector<size_t> indexes;  // of the caller's list
};

Batch take_batch(std::vector<v1::SubmitItem>& items, size_t* next) {
  Batch out;
  size_t bytes = 0;
  while (*next < items.size() && out.request.jobs_size() < kRequestJobsMax) {
    const size_t size = items[*next].ByteSizeLong() + 16;
    if (bytes > 0 && bytes + size > kRequestBytesMax) break;
    bytes += size;
    out.indexes.push_back(*next);
    *out.request.add_jobs() = std::move(items[(*next)++]);
  }
  return out;
}

// Keeps of the batch what the server asks to send again.
void take_answers(const v1::SubmitReply& reply, const Answered& answered, Batch* batch, absl::Status* busy) {
  Batch left;
  for (int i = 0; i < batch->request.jobs_size(); ++i) {
    const size_t index = batch->indexes[static_cast<size_t>(i)];
    absl::Status status;
    if (i >= reply.results_size()) {
      status = absl::InternalError("the server answered fewer jobs than were sent");
    } else if (reply.results(i).code() != 0) {
      status = absl::Status(static_cast<absl::StatusCode>(reply.results(i).code()), reply.results(i).error());
    }
    if (worth_retrying(status)) {
      *busy = status;
      left.indexes.push_back(index);
      *left.request.add_jobs() = std::move(*batch->request.mutable_jobs(i));
      continue;
    }
    answered(index, status, status.ok() ? reply.results(i) : v1::SubmitResult());
  }
  *batch = std::move(left);
}

}  // namespace

std::string random_key() {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof bytes) != 1) {
    std::cerr << "muster: the system has no random numbers\n";
    std::abort();
  }
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes), sizeof bytes));
}

absl::Status submit(Client& client, std::vector<v1::SubmitItem> items, int64_t patience_ms,
                    const Answered& answered) {
  Patience patience(patience_ms);
  size_t next = 0;
  Batch batch;
  while (true) {
    if (batch.indexes.empty()) batch = take_batch(items, &next);
    if (batch.indexes.empty()) return absl::OkStatus();
    v1::SubmitReply reply;
    absl::Status status = client.call(&v1::Muster::Stub::Submit, batch.request, &reply);
    if (status.ok()) {
      const size_t before = batch.indexes.size();
      take_answers(reply, answered, &batch, &status);
      if (batch.indexes.size() < before) patience.succeeded();
    }
    if (status.ok()) continue;
    if (!worth_retrying(status) || !patience.wait(status)) return status;
  }
}

}  // namespace muster::tools
