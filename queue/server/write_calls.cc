// Submit, Change and Operate: checked here, appended by the engine, answered when they were folded.
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "queue/server/errors.h"
#include "queue/server/lookup.h"
#include "queue/server/muster_service.h"
#include "queue/validate.h"

namespace muster::server {
namespace {

using Unary = grpc::ServerUnaryReactor;
using Outcomes = std::vector<queue::Outcome>;

// The caller, as far as it says who it is: nobody is authenticated yet.
std::string caller_of(const grpc::CallbackServerContext* context) {
  const auto& metadata = context->client_metadata();
  const auto user = metadata.find("muster-user");
  if (user == metadata.end() || user->second.empty() || user->second.size() > 128)
    return std::string(queue::kAnonymous);
  return std::string(user->second.data(), user->second.size());
}

void set_actor(v1::Record* record, const std::string& principal) {
  record->mutable_actor()->set_principal(principal);
  record->mutable_actor()->set_authenticated_by("local");
}

// Makes the records; the first malformed field refuses the whole request.
absl::Status make_records(v1::SubmitRequest* request, const std::string& caller,
                          std::vector<v1::Record>* records, size_t* bytes) {
  if (request->jobs().empty() || request->jobs_size() > queue::kSubmitJobsMax)
    return queue::field_error({nullptr, "jobs"}, absl::StrCat(request->jobs_size()),
                              absl::StrCat("must be 1 to ", queue::kSubmitJobsMax));
  records->resize(static_cast<size_t>(request->jobs_size()));
  for (int i = 0; i < request->jobs_size(); ++i) {
    v1::SubmitItem& item = *request->mutable_jobs(i);
    const queue::FieldPath at{nullptr, "jobs", i};
    if (absl::Status bad = queue::validate_key(item.key(), {&at, "key"}); !bad.ok()) return bad;
    if (item.spec().user().empty()) item.mutable_spec()->set_user(caller);
    if (absl::Status bad = queue::validate_and_fill(item.mutable_spec(), {&at, "spec"}); !bad.ok())
      return bad;
    v1::Record& record = (*records)[static_cast<size_t>(i)];
    set_actor(&record, item.spec().user());
    *bytes += static_cast<size_t>(item.spec().GetCachedSize());
    v1::Submitted& body = *record.mutable_submitted();
    body.set_key(std::move(*item.mutable_key()));
    body.mutable_spec()->Swap(item.mutable_spec());
  }
  return absl::OkStatus();
}

// One job alone: its failure is the call's.
grpc::Status fill_reply(const Outcomes& outcomes, v1::SubmitReply* reply) {
  if (outcomes.size() == 1 && !outcomes[0].ok()) return to_grpc(outcomes[0]);
  reply->mutable_results()->Reserve(static_cast<int>(outcomes.size()));
  for (const queue::Outcome& outcome : outcomes) {
    v1::SubmitResult& result = *reply->add_results();
    result.set_id(outcome.job);
    result.set_name(outcome.name);
    result.set_duplicate(outcome.duplicate);
    result.set_code(static_cast<int32_t>(outcome.code));
    result.set_error(outcome.message);
    result.set_position(outcome.position);
  }
  return grpc::Status::OK;
}

absl::Status retry_body(Driver& driver, const v1::ChangeRequest& request, uint64_t id, v1::Record* body) {
  Lookup lookup(driver);
  if (request.job().element() != 0)
    return queue::field_error({nullptr, "job"}, queue::quoted(job_name(id, request.job().element())),
                              "retry takes a whole job");
  if (absl::Status bad = queue::validate_key(request.retry().key(), {nullptr, "retry.key"}); !bad.ok())
    return bad;
  v1::JobRef ref;
  ref.set_id(id);
  auto view = lookup.view(ref, true);
  if (!view.ok()) return view.status();
  if (!queue::terminal(view->state().phase()))
    return absl::FailedPreconditionError(absl::StrCat("job ", id, " is ",
                                                      v1::Phase_Name(view->state().phase()),
                                                      "; only a job that has ended can be retried"));
  body->mutable_submitted()->set_key(request.retry().key());
  body->mutable_submitted()->set_retry_of(id);
  *body->mutable_submitted()->mutable_spec() = std::move(*view->mutable_spec());
  return absl::OkStatus();
}

template <typename Body>
void set_job(Body* body, uint64_t id, uint32_t element) {
  body->set_job(id);
  body->set_element(element);
}

absl::Status change_body(Driver& driver, const v1::ChangeRequest& request, uint64_t id, v1::Record* body) {
  const uint32_t element = request.job().element();
  switch (request.change_case()) {
    case v1::ChangeRequest::kCancel:
      set_job(body->mutable_cancel_requested(), id, element);
      break;
    case v1::ChangeRequest::kHold:
      set_job(body->mutable_hold_requested(), id, element);
      break;
    case v1::ChangeRequest::kRelease:
      set_job(body->mutable_release_requested(), id, element);
      break;
    case v1::ChangeRequest::kRequeue:
      set_job(body->mutable_requeue_requested(), id, element);
      break;
    case v1::ChangeRequest::kUpdate:
      if (element != 0)
        return queue::field_error({nullptr, "job"}, queue::quoted(job_name(id, element)),
                                  "update takes a whole job");
      body->mutable_updated()->set_job(id);
      return queue::parse_update(request.update(), body->mutable_updated());
    case v1::ChangeRequest::kRetry:
      return retry_body(driver, request, id, body);
    case v1::ChangeRequest::CHANGE_NOT_SET:
      return queue::field_error({nullptr, "change"}, "nothing",
                                "must be cancel, hold, release, requeue, update or retry");
  }
  return absl::OkStatus();
}

absl::Status operate_body(const v1::OperateRequest& request, v1::Record* body) {
  switch (request.what_case()) {
    case v1::OperateRequest::kNode: {
      const queue::FieldPath at{nullptr, "node"};
      if (absl::Status bad = queue::validate_node_name(request.node().node(), {&at, "node"}); !bad.ok())
        return bad;
      if (request.node().action() == v1::NodeSet::NONE ||
          !v1::NodeSet::Action_IsValid(request.node().action()))
        return queue::field_error({&at, "action"}, absl::StrCat(request.node().action()),
                                  "must be drain, undrain or quarantine");
      if (request.node().reason().size() > 1024)
        return queue::field_error({&at, "reason"}, queue::quoted(request.node().reason()),
                                  "must be at most 1024 bytes");
      *body->mutable_node_set() = request.node();
      return absl::OkStatus();
    }
    case v1::OperateRequest::kQueue:
      *body->mutable_queue_set() = request.queue();
      if (request.queue().queue().weight() == 0) body->mutable_queue_set()->mutable_queue()->set_weight(1);
      return queue::validate_queue_spec(body->queue_set().queue(), {nullptr, "queue"});
    case v1::OperateRequest::kQueueRemoved:
      *body->mutable_queue_removed() = request.queue_removed();
      return queue::validate_queue_name(request.queue_removed().name(), {nullptr, "queue"});
    case v1::OperateRequest::kPolicy:
      *body->mutable_policy_set() = request.policy();
      if (request.policy().key().size() > 128 || request.policy().value().size() > 1024)
        return queue::field_error({nullptr, "policy"}, queue::quoted(request.policy().key()),
                                  "must be a key of at most 128 bytes and a value of at most 1024");
      return absl::OkStatus();
    case v1::OperateRequest::WHAT_NOT_SET:
      break;
  }
  return queue::field_error({nullptr, "what"}, "nothing", "must be node, queue, queue_removed or policy");
}

}  // namespace

Unary* MusterService::Submit(Context* context, const v1::SubmitRequest* request, v1::SubmitReply* reply) {
  Unary* reactor = context->DefaultReactor();
  std::vector<v1::Record> records;
  size_t bytes = 0;
  // The message is this call's own until Finish(): its specs are moved into the records, not copied.
  auto* own = const_cast<v1::SubmitRequest*>(request);
  absl::Status status = make_records(own, caller_of(context), &records, &bytes);
  if (status.ok()) {
    status = driver_.submit(std::move(records), bytes, [reactor, reply](Outcomes outcomes) {
      reactor->Finish(fill_reply(outcomes, reply));
    });
  }
  if (!status.ok()) reactor->Finish(to_grpc(status));
  return reactor;
}

Unary* MusterService::Change(Context* context, const v1::ChangeRequest* request, v1::ChangeReply* reply) {
  Unary* reactor = context->DefaultReactor();
  const std::string caller = caller_of(context);
  const auto start = [this, reactor, request, reply, caller]() -> absl::Status {
    auto id = Lookup(driver_).resolve(request->job());
    if (!id.ok()) return id.status();
    v1::Record body;
    set_actor(&body, caller);
    if (absl::Status bad = change_body(driver_, *request, *id, &body); !bad.ok()) return bad;
    return driver_.change(std::move(body), [reactor, reply, id = *id](Outcomes outcomes) {
      const queue::Outcome& outcome = outcomes[0];
      reply->set_id(outcome.job != 0 ? outcome.job : id);
      reply->set_name(outcome.name);
      reply->set_position(outcome.position);
      reply->set_duplicate(outcome.duplicate);
      reactor->Finish(to_grpc(outcome));
    });
  };
  const bool queued = pool_.run([reactor, start] {
    if (absl::Status status = start(); !status.ok()) reactor->Finish(to_grpc(status));
  });
  if (!queued)
    reactor->Finish(to_grpc(absl::ResourceExhaustedError("too many calls wait; retry after 500 ms")));
  return reactor;
}

Unary* MusterService::Operate(Context* context, const v1::OperateRequest* request, v1::OperateReply* reply) {
  Unary* reactor = context->DefaultReactor();
  v1::Record body;
  set_actor(&body, caller_of(context));
  absl::Status status = operate_body(*request, &body);
  if (status.ok()) {
    status = driver_.change(std::move(body), [reactor, reply](Outcomes outcomes) {
      reply->set_position(outcomes[0].position);
      reactor->Finish(to_grpc(outcomes[0]));
    });
  }
  if (!status.ok()) reactor->Finish(to_grpc(status));
  return reactor;
}

}  // namespace muster::server
