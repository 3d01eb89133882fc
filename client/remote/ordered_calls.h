// OrderedCalls: changes that a mount asks of its MDS, which may answer them before they are durable
// (wire::Ordered; mds/README.md, "Answered when ordered"): notes what answers say of that, keeps
// each request until it is durable, and repeats what is kept to an MDS that has begun anew.
//
// States: *going on*: answers are of the life that BeginLife named last; what is answered early is
//         kept by its order, under the id that was reserved for it, until an answer or a WATCH says
//         that it is durable: then its id is free.
//         *repeating*, from a BeginLife with another life to the end of Repeat: what was kept is
//         asked again, one after the other, and kept anew. If the MDS begins anew meanwhile, Repeat
//         ends with false, and the next one begins with all that is not durable.
//         Without Options::keeps nothing is kept: the mount dies with its MDS.
// Threads: calls from any thread, BeginLife and Repeat of who opens the session, one at a time.
//          Callbacks on a reactor or an RPC's I/O thread; never under the lock.
// Errors:  a call ends as RpcClient::Call does. What an MDS refuses to repeat is lost: on_lost.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "client/remote/kept_requests.h"
#include "client/remote/mds_channels.h"
#include "client/remote/ordered_names.h"
#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/net/rpc.h"

namespace weir::wire {
class Ordered;
}

namespace weir::client {

class OrderedCalls {
 public:
  struct Options {
    OrderedNames* names = nullptr;  // hears what is answered
    Duration within{0};             // early answers are durable so soon; 0: takes none
    bool keeps = false;             // for an MDS that begins anew
    Duration timeout = Duration::max();
    std::function<void(size_t)> on_lost;  // so much could not be repeated; may be empty
    // Files that were made and opened again, of which some may have been closed; may be empty.
    std::function<void(const std::vector<InodeId>&)> on_made_again;
    // What removals had kept for this mount, which may have let it go since; may be empty.
    std::function<void(const std::vector<InodeId>&)> on_kept_again;
  };
  using Callback = net::RpcClient::Callback;

  // The channels outlive it, and are stopped before it goes.
  OrderedCalls(MdsChannels& channels, Options options);

  // As RpcClient::Call, by that channel; the caller has a Use.
  void Call(size_t channel, uint32_t method, std::string body, const net::CallOptions& call,
            Callback callback);
  // `done` when all that was answered before is durable, or lost. An MDS that has begun anew and
  // does not wait for this mount any more has nothing to say of that: it is asked again when all
  // is repeated.
  void Commit(std::function<void(const Status&)> done);
  // What the MDS says besides.
  void Heard(const wire::Ordered& said);

  // A session has begun in that life of the MDS.
  void BeginLife(uint64_t life);
  // Then, before the session goes on: repeats what was kept, if anything, and says that this is
  // all. `done`: whether the session goes on; not if the channels are stopped.
  void Repeat(std::function<void(bool)> done);
  void Tick();  // several times a second
  void Stop();  // after the channels: commits that wait end with kCancelled

 private:
  // Hears besides what the answer shows.
  Callback Looking(Callback callback);
  void Send(KeptRequests::Request kept, const net::CallOptions& call, Callback callback);
  void OnAnswer(KeptRequests::Request kept, const net::CallOptions& call, Result<net::Reply> reply,
                const Callback& callback);
  // What an answer says of its place, before whoever asked goes on; returns it.
  uint64_t Note(uint32_t method, const net::Reply& reply, wire::Ordered* said) const;
  // Whether the answer to a Commit that was asked in that life does; it waits, then.
  bool SaysNothing(const wire::Ordered& said, uint64_t asked_in,
                   const std::function<void(const Status&)>& done);
  void FreeDurable();
  void RepeatNext(std::function<void(bool)> done);
  void OnRepeated(const Result<net::Reply>& reply, std::function<void(bool)> done);
  void Lost(const KeptRequests::Request& request);
  void EndRepeat(std::function<void(bool)> done);

  MdsChannels& channels_;
  const Options options_;
  std::atomic<uint64_t> life_{0};  // of the MDS
  std::mutex mutex_;
  bool repeating_ = false;                                   // not all of it has been, in life_
  std::vector<std::function<void(const Status&)>> commits_;  // to be asked for again
  KeptRequests kept_;
  std::deque<KeptRequests::Request> unrepeated_;
  size_t lost_ = 0;                  // of those
  OrderedNames::Losses losses_;      // by them
  std::vector<InodeId> made_again_;  // by those
  std::vector<InodeId> kept_again_;  // likewise
};

}  // namespace weir::client
