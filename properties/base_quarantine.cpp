// The quarantine against a list: any order of commands by one thread, every answer, sum and list after each step.
#include <properties/in_world.hpp>

#include <holdfast/base/quarantine.hpp>
#include <holdfast/telemetry/event_log.hpp>
#include <properties/forged_evidence.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

namespace holdfast::properties {

namespace {

constexpr std::size_t entry_count = 5;
constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

struct kept final : quarantine_entry {};

// What an entry is, by a number: few different subjects, so that evidence often fits and often does not.
quarantine_terms terms_of(std::size_t entry, unsigned number) {
  quarantine_terms terms;
  terms.kind = static_cast<quarantine_kind>(number % quarantine_kinds);
  terms.id = 1 + entry;
  terms.reason = static_cast<quarantine_reason>(number % quarantine_reasons);
  terms.bytes = number == 63 ? most : number;
  terms.answer = (number & 1) != 0;
  terms.operation = (number & 2) != 0 ? 1 + number % 3 : 0;
  terms.incarnation = 1 + number % 2;
  terms.epoch = (number & 4) != 0 ? 1 + number / 8 % 2 : 0;
  terms.needs_gets_fenced = (number & 8) != 0;
  terms.fence = (number & 16) != 0;
  terms.context = (number & 32) != 0 ? 1 + number % 3 : 0;
  return terms;
}

struct model_entry {
  bool inside = false;
  bool abandoned = false;
  quarantine_terms terms;
  std::uint64_t stamp = 0;
  platform::time_point since{};
};

// What was observed, as the model keeps it.
struct observation {
  evidence real;
  evidence_kind kind = evidence_kind::none;
  std::uint64_t subject = 0;
  quarantine_kind about{};
  std::size_t entry = 0;          // fences
  std::uint64_t incarnation = 0;  // witness
  bool gets_fenced = false;       // witness

  bool covers(std::size_t index, const model_entry& e) const {
    const quarantine_terms& t = e.terms;
    switch (kind) {
      case evidence_kind::answer: return t.answer && subject == t.id && about == t.kind;
      case evidence_kind::completion: return t.operation != 0 && subject == t.operation;
      case evidence_kind::witness:
        return t.epoch != 0 && subject == t.epoch && incarnation == t.incarnation &&
               (gets_fenced || !t.needs_gets_fenced);
      case evidence_kind::fence: return t.fence && entry == index && subject > e.stamp;
      case evidence_kind::termination: return t.context != 0 && subject == t.context;
      default: return false;
    }
  }
};

// By two numbers; fences are made by the command that begins them.
observation observed(unsigned a, unsigned b) {
  observation made;
  const std::uint64_t subject = a / 8 % 4;
  const bool seen = b != 0;
  switch (a % 4) {
    case 0:
      made.about = static_cast<quarantine_kind>(b % quarantine_kinds);
      made.real = evidence::answered(made.about, 1 + subject, seen);
      made.subject = 1 + subject;
      made.kind = evidence_kind::answer;
      break;
    case 1:
      made.real = evidence::completed(subject);
      made.subject = subject;
      made.kind = subject != 0 ? evidence_kind::completion : evidence_kind::none;
      return made;
    case 2:
      made.incarnation = 1 + b % 2;
      made.gets_fenced = b / 2 % 2 != 0;
      made.subject = 1 + subject;
      made.kind = evidence_kind::witness;
      made.real = forged_evidence::transport_gone(made.incarnation, made.subject, made.gets_fenced);
      return made;
    default:
      made.real = evidence::terminated(subject, termination::device_reset, "property", seen);
      made.subject = subject;
      made.kind = subject != 0 ? evidence_kind::termination : evidence_kind::none;
      break;
  }
  if (!seen) made.kind = evidence_kind::none;
  return made;
}

struct model_list {
  std::array<model_entry, entry_count> entries;
  std::vector<std::size_t> order;  // of those inside
  std::uint64_t stamp;
  quarantine_sum abandoned;

  static void add(quarantine_sum& sum, std::uint64_t bytes) {
    ++sum.entries;
    sum.bytes = bytes > most - sum.bytes ? most : sum.bytes + bytes;
  }
  void leave(std::size_t index) {
    entries[index].inside = false;
    order.erase(std::find(order.begin(), order.end(), index));
  }
  void abandon() {
    for (const std::size_t index : order) {
      entries[index].inside = false;
      entries[index].abandoned = true;
      add(abandoned, entries[index].terms.bytes);
    }
    order.clear();
  }
  std::uint64_t next_stamp() { return stamp == most ? stamp : ++stamp; }

  void agree(model_run& run, const quarantine& real, const std::array<kept, entry_count>& objects,
             std::size_t step) const {
    quarantine_totals sums;
    for (const std::size_t index : order) {
      const quarantine_terms& terms = entries[index].terms;
      add(sums.inside, terms.bytes);
      add(sums.by_kind[static_cast<std::size_t>(terms.kind)], terms.bytes);
      add(sums.by_reason[static_cast<std::size_t>(terms.reason)], terms.bytes);
    }
    const quarantine_totals said = real.totals();
    run.expect(said.inside == sums.inside, "everything inside is counted once", step);
    run.expect(std::equal(std::begin(said.by_kind), std::end(said.by_kind), sums.by_kind), "by kind", step);
    run.expect(std::equal(std::begin(said.by_reason), std::end(said.by_reason), sums.by_reason), "by reason", step);
    run.expect(said.abandoned == abandoned, "what was given up stays counted", step);

    std::array<quarantine_view, entry_count> seen;
    run.expect(real.snapshot_into(seen) == order.size(), "all that is inside is listed", step);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const model_entry& e = entries[order[i]];
      run.expect(seen[i].terms.id == e.terms.id && seen[i].terms.bytes == e.terms.bytes &&
                     seen[i].terms.reason == e.terms.reason && seen[i].terms.accepts() == e.terms.accepts(),
                 "in order of entry, as it entered", step);
      run.expect(seen[i].stamp == e.stamp && seen[i].since == e.since, "with its stamp and its time", step);
    }
    for (std::size_t i = 0; i < entry_count; ++i)
      run.expect(real.holds(objects[i]) == entries[i].inside, "it knows who is inside", step);
  }
};

}  // namespace

RC_GTEST_PROP(BaseQuarantine, LetsGoOnEvidenceOnlyAndCountsTheRest, ()) {
  const auto list = *commands(9, 64);
  const bool near_the_last_stamp = *rc::gen::arbitrary<bool>();
  model_run run;
  quarantine_sum left;
  std::size_t abandonments = 0;
  run.run([&](platform::host& host) {
    event_log log(host.clock());
    std::array<kept, entry_count> objects;
    const std::uint64_t first = near_the_last_stamp ? most - 8 : 1;
    quarantine real(1, log, lock_ranks::base_quarantine, first);
    model_list model{.entries = {}, .order = {}, .stamp = first - 1, .abandoned = {}};
    std::vector<observation> fences;
    const auto index_of = [&](const quarantine_entry* one) {
      return static_cast<std::size_t>(one->view().terms.id - 1);
    };
    for (std::size_t i = 0; i < list.size(); ++i) {
      const command& c = list[i];
      const std::size_t index = c.a % entry_count;
      model_entry& e = model.entries[index];
      switch (c.kind) {
        case 0:
        case 1: {
          const quarantine_terms terms = terms_of(index, c.b);
          const auto now = platform::time_point(platform::duration(i));
          const bool enters = !e.inside && !e.abandoned;
          run.expect(real.admit(objects[index], terms, now) == enters, "what is outside enters, once", i);
          if (enters) {
            e = {true, false, terms, model.next_stamp(), now};
            model.order.push_back(index);
          } else if (e.inside) {
            e.terms.reason = terms.reason;
          }
          break;
        }
        case 2: {
          const auto reason = static_cast<quarantine_reason>(c.b % quarantine_reasons);
          run.expect(real.restate(objects[index], reason) == e.inside, "only what is inside is restated", i);
          if (e.inside) e.terms.reason = reason;
          break;
        }
        case 3:
        case 4: {
          const observation seen = observed(c.b, c.a);
          const bool leaves = e.inside && seen.covers(index, e);
          run.expect(real.discharge(objects[index], seen.real) == leaves, "covering evidence takes it out, other not",
                     i);
          run.expect(!real.discharge(objects[index], seen.real), "and nothing leaves twice", i);
          if (leaves) model.leave(index);
          break;
        }
        case 5: {
          const observation seen = observed(c.a, c.b);
          std::vector<std::size_t> leave;
          for (const std::size_t each : model.order)
            if (seen.covers(each, model.entries[each])) leave.push_back(each);
          quarantine_chain out;
          run.expect(real.discharge_all(seen.real, out) == leave.size(), "all that is covered leaves", i);
          for (const std::size_t each : leave) {
            const quarantine_entry* const one = out.pop_front();
            run.expect(one != nullptr && index_of(one) == each, "the oldest first", i);
            model.leave(each);
          }
          while (out.pop_front() != nullptr) run.expect(false, "nothing else leaves", i);
          break;
        }
        case 6: {
          auto request = real.begin_fence(objects[index]);
          const bool begun = e.inside && e.terms.fence && model.stamp != most;
          run.expect(request.has_value() == begun, "fences are begun for what is inside and names them", i);
          if (!begun || !request) break;
          observation& seen = fences.emplace_back();
          seen.kind = c.b != 0 ? evidence_kind::fence : evidence_kind::none;
          seen.subject = model.next_stamp();
          seen.entry = index;
          run.expect(request->stamp() == seen.subject, "a fence is younger than all that is inside", i);
          seen.real = evidence::fences_passed(std::move(*request), c.b != 0);
          break;
        }
        case 7: {
          if (fences.empty()) break;
          const observation& seen = fences[c.b % fences.size()];
          const bool leaves = e.inside && seen.covers(index, e);
          run.expect(real.discharge(objects[index], seen.real) == leaves, "fences end the stay that they are about", i);
          if (leaves) model.leave(index);
          break;
        }
        case 8: {
          // Seldom: nothing comes back.
          if (c.b != 1) break;
          quarantine_chain out;
          const std::size_t inside = model.order.size();
          run.expect(real.abandon_all(out) == inside, "everything is given up", i);
          for (const std::size_t each : model.order) {
            const quarantine_entry* const one = out.pop_front();
            run.expect(one != nullptr && index_of(one) == each, "in order", i);
          }
          while (out.pop_front() != nullptr) run.expect(false, "nothing else is given up", i);
          abandonments += inside != 0 ? 1 : 0;
          model.abandon();
          break;
        }
      }
      model.agree(run, real, objects, i);
    }
    for (const std::size_t each : model.order) model_list::add(left, model.entries[each].terms.bytes);
    abandonments += left.entries != 0 ? 1 : 0;
  });
  RC_ASSERT(run.events.count(event_id::quarantine_abandoned) == abandonments);
  if (left.entries != 0) {
    const sim::logged_event& last = run.events.events.back();
    RC_ASSERT(last.kind == sim::kind_of(event_id::quarantine_abandoned));
    RC_ASSERT(last.fields[1] == left.entries && last.fields[2] == left.bytes);
  }
}

}  // namespace holdfast::properties
