#include "queue/server/muster_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "queue/server/errors.h"
#include "queue/server/logs_call.h"
#include "queue/server/lookup.h"
#include "queue/server/queued_writer.h"
#include "queue/server/views.h"
#include "queue/server/watch_call.h"

namespace muster::server {
namespace {

constexpr size_t kPoolThreads = 4;
constexpr size_t kPoolWaitingMax = 2'000;
constexpr size_t kStreamsMax = 256;

// Puts a found message into the reply.
template <typename Message>
absl::Status put(absl::StatusOr<Message> found, Message* reply) {
  if (found.ok()) *reply = *std::move(found);
  return found.status();
}

// Starts a call that lasts, on a thread of its own: `run` gets the writer and must return when it is over.
template <typename Message, typename Run>
grpc::ServerWriteReactor<Message>* start_stream(StreamThreads& threads, Run run) {
  auto writer = std::make_shared<QueuedWriter<Message>>();
  writer->keep_alive(writer);
  const bool started = threads.start([writer, run = std::move(run)]() mutable {
    const absl::Status status = run(*writer);
    writer->end(writer->over() ? grpc::Status::CANCELLED : to_grpc(status));
  });
  if (!started)
    writer->end(to_grpc(threads.closed() ? stopping_error()
                                         : absl::ResourceExhaustedError(absl::StrCat(
                                               threads.most(),
                                               " watches and output streams are open, as many as this "
                                               "server serves; retry after 1000 ms"))));
  return writer.get();
}

}  // namespace

MusterService::MusterService(Driver& driver, OutputRouter& router)
    : driver_(driver), router_(router), streams_(kStreamsMax), pool_(kPoolThreads, kPoolWaitingMax) {}

MusterService::~MusterService() = default;

MusterService::Unary* MusterService::on_pool(Context* context, absl::AnyInvocable<absl::Status()> work) {
  Unary* reactor = context->DefaultReactor();
  const bool queued =
      pool_.run([reactor, work = std::move(work)]() mutable { reactor->Finish(to_grpc(work())); });
  if (!queued)
    reactor->Finish(to_grpc(absl::ResourceExhaustedError(
        absl::StrCat(kPoolWaitingMax, " calls wait to be answered; retry after 500 ms"))));
  return reactor;
}

MusterService::Unary* MusterService::GetJob(Context* context, const v1::GetJobRequest* request,
                                            v1::JobView* reply) {
  return on_pool(context, [this, request, reply] {
    return put(Lookup(driver_).view(request->job(), request->spec()), reply);
  });
}

MusterService::Unary* MusterService::ListJobs(Context* context, const v1::ListJobsRequest* request,
                                              v1::ListJobsReply* reply) {
  return on_pool(context, [this, request, reply] { return put(Lookup(driver_).list(*request), reply); });
}

MusterService::Unary* MusterService::Explain(Context* context, const v1::ExplainRequest* request,
                                             v1::ExplainReply* reply) {
  return on_pool(context,
                 [this, request, reply] { return put(Lookup(driver_).explain(request->job()), reply); });
}

MusterService::Unary* MusterService::ListNodes(Context* context, const v1::ListNodesRequest* request,
                                               v1::ListNodesReply* reply) {
  return on_pool(context, [this, request, reply] {
    const auto asked = driver_.call([&](Turn& turn) {
      reply->set_position(turn.state().meta.position());
      for (const auto& [name, node] : turn.state().nodes) {
        if (request->name().empty() || request->name() == name)
          *reply->add_nodes() = node_view(turn.engine, node);
      }
      return true;
    });
    if (!asked) return stopping_error();
    if (!request->name().empty() && reply->nodes().empty())
      return absl::NotFoundError(absl::StrCat("no node ", request->name()));
    return absl::OkStatus();
  });
}

MusterService::Unary* MusterService::ListQueues(Context* context, const v1::ListQueuesRequest*,
                                                v1::ListQueuesReply* reply) {
  return on_pool(context, [this, reply] {
    auto found = driver_.call([](Turn& turn) { return list_queues(turn.state()); });
    if (!found) return stopping_error();
    *reply = *std::move(found);
    return absl::OkStatus();
  });
}

MusterService::Unary* MusterService::GetStatus(Context* context, const v1::GetStatusRequest* request,
                                               v1::ServerStatus* reply) {
  return on_pool(context, [this, request, reply] {
    auto found = driver_.call([&](Turn& turn) {
      if (request->digest()) turn.commit();
      v1::ServerStatus status = server_status(turn.engine, driver_.troubles().text());
      if (request->digest()) status.set_digest(turn.state().digest().bytes());
      return status;
    });
    if (!found) return stopping_error();
    *reply = *std::move(found);
    return absl::OkStatus();
  });
}

MusterService::Stream<v1::Event>* MusterService::Watch(Context*, const v1::WatchRequest* request) {
  return start_stream<v1::Event>(streams_, [this, request = *request](QueuedWriter<v1::Event>& writer) {
    WatchCall call(
        driver_, request, [&](v1::Event event) { return writer.push(std::move(event)); },
        [&] { return writer.over() || streams_.closed(); });
    const absl::Status status = call.run();
    return status.ok() && streams_.closed() ? stopping_error() : status;
  });
}

MusterService::Stream<v1::LogChunk>* MusterService::Logs(Context*, const v1::LogsRequest* request) {
  return start_stream<v1::LogChunk>(streams_, [this, request = *request](QueuedWriter<v1::LogChunk>& writer) {
    auto call = std::make_shared<LogsCall>(
        driver_, router_, request, [&](v1::LogChunk chunk) { return writer.push(std::move(chunk)); },
        [&] { return writer.over() || streams_.closed(); });
    const absl::Status status = call->run();
    return status.ok() && streams_.closed() ? stopping_error() : status;
  });
}

}  // namespace muster::server
