// Service Muster: what people and programs ask. gRPC's threads only check requests and hand them on: writes
// go to the driver and are answered when they were folded; reads run on the work pool; watches and output
// have threads of their own.
#pragma once

#include <grpcpp/server_builder.h>

#include <memory>
#include <string>

#include "muster/v1/service.grpc.pb.h"
#include "queue/server/driver.h"
#include "queue/server/output_router.h"
#include "queue/server/stream_threads.h"
#include "queue/server/work_pool.h"

namespace muster::server {

class MusterService final : public v1::Muster::CallbackService {
 public:
  MusterService(Driver& driver, OutputRouter& router);
  ~MusterService() override;
  // Ends watches and output streams; new ones are refused.
  void stop() { streams_.close(); }

  template <typename Message>
  using Stream = grpc::ServerWriteReactor<Message>;
  using Unary = grpc::ServerUnaryReactor;
  using Context = grpc::CallbackServerContext;

  Unary* Submit(Context* context, const v1::SubmitRequest* request, v1::SubmitReply* reply) override;
  Unary* Change(Context* context, const v1::ChangeRequest* request, v1::ChangeReply* reply) override;
  Unary* Operate(Context* context, const v1::OperateRequest* request, v1::OperateReply* reply) override;
  Unary* GetJob(Context* context, const v1::GetJobRequest* request, v1::JobView* reply) override;
  Unary* ListJobs(Context* context, const v1::ListJobsRequest* request, v1::ListJobsReply* reply) override;
  Unary* Explain(Context* context, const v1::ExplainRequest* request, v1::ExplainReply* reply) override;
  Unary* ListNodes(Context* context, const v1::ListNodesRequest* request, v1::ListNodesReply* reply) override;
  Unary* ListQueues(Context* context, const v1::ListQueuesRequest* request,
                    v1::ListQueuesReply* reply) override;
  Unary* GetStatus(Context* context, const v1::GetStatusRequest* request, v1::ServerStatus* reply) override;
  Stream<v1::Event>* Watch(Context* context, const v1::WatchRequest* request) override;
  Stream<v1::LogChunk>* Logs(Context* context, const v1::LogsRequest* request) override;

 private:
  // Runs `work` on the pool and finishes the call with what it returns.
  Unary* on_pool(Context* context, absl::AnyInvocable<absl::Status()> work);
  Driver& driver_;
  OutputRouter& router_;
  StreamThreads streams_;
  WorkPool pool_;
};

}  // namespace muster::server
