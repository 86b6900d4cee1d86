package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// row is a check: a function that finds something, and the sentence about each result. Words in braces are replaced by those of the about, or by common ones
// (see say).
type row struct {
	kind     string
	find     func(*facts) []about
	sentence string
}

// The parts of sentences that plannedBy replaces if the controller plans for all pods.
const (
	planner = "The next pod that plans"
	podsLog = "the log of idalloc in the pods"
	taker   = "A pod that waits takes it, or a pod with an id takes the name out after ten seconds."
)

const (
	again   = " " + planner + " writes it again within seconds, and holders keep their ids."
	stays   = " If it stays, run {gc}."
	repair  = " See its log, repair what stops its work, or run {delete}."
	rounded = "its maxUnavailable is 0, since a percentage of {count} replicas is rounded down"
	givesIt = " Give a pod that starts time with --wait=1m. "
	keeps   = " A new pod starts before an old one ends, and these do not hand their ids over: {pods}. To mend that, {out}"
	written = ", and idalloc has not written the workload for at least {since}"
)

// findings returns the checks for things that are wrong. Findings of the same kind must differ in more than their sentence.
func findings() []row {
	return append([]row{
		{"heldTwice", heldTwice, "the receipts of pods {other} and {pod} lock id {id}. The one that was written later withdraws within seconds. If both stay, ask both programs, " +
			"and delete the pod that does not act under the id."},
		{"dead", deadHolders, "id {id} belongs to pod {pod}, which is {why}. " + taker + stays},
		{"lost", lostHolders(false), "id {id} belongs to pod {pod}, which has outlived its grace period by {over}: its node {node} may be down. No other pod gets the id before this one is gone. " +
			"Bring the node back. If the node will not come back, taint it node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, or delete the Node object."},
		{"lostStrict", lostHolders(true), "id {id} belongs to pod {pod}, whose grace period has been over for {over}: its node {node} may be down. Another strict pod takes it {when}. " +
			"If none waits, bring the node back."},
		{"fenced", fencedHolders, "pod {pod} has not renewed the Lease of id {id} since {since}, so its work has stopped, and another strict pod may take the id. {why}"},
		{"unheld", unheld(pod.isPlain), "id {id} is free while pod {pod} waits." + givesIt + "Otherwise see the log of idalloc in pod {pod}, if it runs there."},
		{"unkept", unheld(pod.gaveUp), "id {id} is free while pod {pod} waits, which gave its slot up for another pod." + givesIt +
			"Otherwise the others do not keep the id: repair their revision, or undo it."},
		{"ungiven", unheld(pod.isAssigned), "id {id} is free while pod {pod} waits for one of idalloc-controller. Give the controller time with --wait=1m. Otherwise see " + checks + "."},
		{"silent", silent, "pods run idalloc ({pods}), and neither they nor {owner} have an annotation of idalloc's. See the log of idalloc in pod {pod}: it may not reach the API server. " +
			"Otherwise an admission webhook or policy removes idalloc.dev/*."},
		{"damaged", damagedOwner, "another program damaged {what}: it is ignored." + again + stays},
		{"damagedReceipt", damaged(true), "another program damaged the receipt of pod {pod}: {what}. It locks {locks} until idalloc writes it again, within seconds. If it stays, run {delete}."},
		{"damagedLabels", damaged(false), "another program changed labels of pod {pod}: {what}. idalloc sets them again within seconds. If they stay, run {delete}."},
		{"changed", wiped, "{owner} has no assignment although pods hold ids of it: it was removed, or the workload was made again." + again + stays},
		{"copied", copied, "the assignment names pod {pod}, which lives and is not a pod of {owner}: it was copied from another workload. " + planner + " writes another one. " +
			"If none does, run `kubectl annotate {kind} {name} -n {namespace} " + assignment.Key + "-`."},
		{"mismatch", mismatches, "pod {pod} locks id {id}, and the assignment gives it to {other}. " + planner + " puts that right." + stays},
		{"otherID", otherIDs, "the assignment gives id {id} to pod {pod}, whose receipt locks id {other}. " + planner + " puts that right." + stays},
		{"notTaken", untaken(false), "the assignment has given id {id} to pod {pod} for at least {since}, and the pod has not locked it. See the log of idalloc in the pod: " +
			"it may not reach the API server. Otherwise an admission webhook or policy removes its receipt. If you do not need the pod, run {delete}."},
		{"notGiven", untaken(true), "the assignment has given id {id} to pod {pod} for at least {since}, and idalloc-controller has not given it to the pod. See " + checks + "."},
		{"writeRefused", refusedWrites, "the API server refuses what idalloc writes on {what}: {why}. Exempt idalloc's keys from that rule{else}."},
		{"otherOwner", otherOwners, "pod {pod} is a pod of {owner}, but still {does} of {other}. idalloc in the pod stops its work there and claims an id here, " +
			"within seconds. An agent does so when idalloc-controller proposes another id. If it stays, see its log, and run {delete}."},
		{"stranded", stranded, "pod {pod} is a pod of {owner}. It gave its id of {other} up {since} ago, and has not come here. See its log: perhaps the Role of its account does not " +
			"permit this workload."},
		{"ungated", ungated, "pod {pod} has label " + receipt.AssignLabel + " and no scheduling gate, so its program runs without an id. See " + checks +
			" for the policy that adds the gate, and run {delete}."},
		{"untold", untold, "idalloc-controller has proposed nothing for at least {since} to pods with label " + receipt.AssignLabel + ": " + receipt.ByAgent + " ({pods}). See " + checks +
			": it may be away, or not know the kind of the workload. Pods with an id keep it."},
		{"misled", misled, "annotation " + receipt.ProposalKey + " of pod {pod}, which is one of {owner}, names {other}. The controller writes it again within seconds. If it stays, see " + checks + "."},
		{"foreign", foreign, "pod {pod} is not a pod of {owner} ({why}), and its receipt locks id {id}. No other pod gets the id while it lives. See who made or relabelled it. " +
			"When nothing acts in it any more, run {delete}."},
		{"waits", barred(false), "pod {pod} has waited for an id for {since}. Live pods have all {count} ids, and none of them ends ({pods}). Delete one that is not needed."},
		{"barred", barred(true), "pod {pod} has waited for an id for {since}. Live pods have all {count} ids ({pods}), and {other} has no place in the workload any more. " +
			"Kubernetes ends that one only when this one is Ready: run {drop}."},
		{"notStopped", notStopped, "pod {pod} was asked for id {id} at least {since} ago, pod {other} waits for it, and its work continues." + repair},
		{"notMoved", notMoved, "the count has been {count} for at least {since}, and the work of pod {pod} under id {id} continues." + repair},
		{"frozen", frozenSets, "{owner} and ReplicaSet {other} were made by one Deployment, and have different owners. idalloc-controller gives no id and removes no pod until one owner has both. " +
			"Make the Deployment again, or delete what you do not need. A ReplicaSet that is to stay alone needs annotation " + assignment.AdoptKey + " with its own name."},
		{"stuck", stuckUpdates, "the rolling update of {owner} is stuck. Pod {pod} of its current revision waits for an id. Kubernetes ends no old pod before a new one is Ready: " + rounded + ". " +
			"The old pods do not hand over: {pods}. Run `kubectl patch deployment {name} -n {namespace} " +
			`-p '{"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}'` + "`. {out}"},
		{"overdue", overdueUpdates, "the rolling update of {owner} has made no progress within its deadline ({message}). See why the pods of the current revision are not available, " +
			"or run `kubectl rollout undo deployment/{name} -n {namespace}`."},
		{"standing", standing, "idalloc-controller is blocked, and said {since} ago: {message}."},
		{"otherGates", otherGates, "pod {pod} has waited for {since} behind other scheduling gates ({gates}). It gets an id when idalloc's gate is the last. See who removes them. " +
			"If another program also waits until its gate is the last, neither removes its gate."},
		{"condemned", condemnedHolders, "{owner} does not have the ordinals of {pods} any more, which keep ids that another pod waits for. With the policy OrderedReady Kubernetes removes " +
			"such a pod only when all others are Ready. Run {delete}, and so on for each."},
		{"condemnedIdle", condemnedIdlers, "{owner} does not have the ordinals of {pods} any more, which have no ids and are not Ready without. With the policy OrderedReady Kubernetes removes " +
			"such a pod only when all others are Ready. Run {delete}, and so on for each."},
		{"partitionTwice", partitionsTwice, "the receipts of pods {other} and {pod} lock partitions {partitions}. The one that was written later lets go within seconds. " +
			"If both stay, ask both programs, and delete the pod that does not work on them."},
		{"partitionMismatch", strayPartitions, "pod {pod} locks partitions {partitions}, and annotation " + assignment.PartitionOwnersKey + " does not give them to its id. " +
			"It lets go when its work on them has stopped, and no other pod gets them before. If it stays, see its log, and run {delete}."},
		{"partitionsChanged", partitionsWiped, "{owner} does not say who owns which partitions although pods lock some: that was removed, or the workload was made again. " + planner +
			" writes it again within seconds, and no work stops meanwhile. If it stays, see " + podsLog + "."},
		{"partitionUnowned", unowned(true), "partitions {partitions} belong to no id" + written + ". " + planner + " gives them out within seconds. See " + podsLog + "."},
		{"partitionAwaiting", awaited("tooLong"), "partitions {partitions} belong to id {id}, which no pod has" + written + ". Other ids should have got them {after} (annotation " +
			assignment.PartitionFailoverAfterKey + "). See why no pod has the id, and " + podsLog + "."},
		{"partitionNotTaken", partitionsNotTaken, "partitions {partitions} belong to id {id}, and pod {pod}, which has it, has not locked them for at least {since}. The pod takes them, or a pod " +
			"that lacks them moves them, within seconds. If it stays, see " + podsLog + "."},
		{"partitionNotStopped", partitionsNotStopped, "partitions {partitions} should go to another id, and the work of pod {pod} on them has continued for at least {since}." + repair},
		{"ignored", ignored, "{what}: the value is invalid and is ignored. Set a valid one."},
	}, wishRows()...)
}

// wishRows returns the checks whose sentences "get --partitions" also prints.
func wishRows() []row {
	return []row{
		{"partitionUnused", partitionsUnused, "annotation " + assignment.PartitionCountKey + " asks for {want} partitions, and no pod that has an id works on partitions. Start idalloc in the pods with --partitions, " +
			"or link idalloc and call RunPartitions. If they do so, they are paused."},
		{"partitionPending", pendingWishes, "annotation {key} asks for {want}, and {have} is in force. " + planner + " takes it over within seconds. If it stays, see " + podsLog + "."},
		{"partitionStrategy", unknownWishes, "annotation " + assignment.PartitionStrategyKey + " asks for strategy {want}, which this idalloc does not know, and {have} is in force until a pod plans that knows it. " +
			"See if the name is right, and if the pods' program has this strategy."},
	}
}

// warnings returns the checks for things that are not wrong, but may lead to a problem.
func warnings() []row {
	return []row{
		{"idleEntries", idleEntries, "the assignment names dead pods, for ids {ids}, and no pod lives that could take them out. The next one does; {gc} does it now."},
		{"idleRequest", idleRequests, "the request of pod {pod} for id {id} cannot be met any more ({why}). " + planner + " drops it."},
		{"graceless", graceless, "terminationGracePeriodSeconds: 0 of pods {pods} makes each deletion a force delete, also in a rolling update, so that two pods may act under one id. " +
			"Take it out of the pod template, or use strict mode."},
		{"account", refusedAccounts, "service account {account} was made again after these pods had started: {pods}. The API server refuses their tokens until the kubelet has written new ones, " +
			"up to an hour after {since}. Until then they keep ids and hand none over, but not in strict mode: delete them one after the other."},
		{"wouldStick", updatesThatWouldStick, "a rolling update of {owner} would wait for ever: " + rounded + "." + keeps},
		{"wouldStickBelow", updatesThatWouldStickBelow, "below {below} replicas, to which it may be scaled, a rolling update of {owner} would wait for ever: " +
			"its maxUnavailable, a percentage, is 0 there." + keeps},
		{"budget", tightBudgets, "{budget}. The controller {does}, and these are refused for ever. A plain rolling update asks no budget. " +
			"Let the budget permit one pod, or set {or}."},
		{"forgotten", forgottenWishes, "annotation " + assignment.PartitionCountKey + " of {owner} is gone, and {count} partitions stay in force. Set it again, or set it to \"0\" to end them."},
		{"unowned", unowned(false), "partitions {partitions} belong to no id" + written + ". " + planner + " gives them out. It is a finding after {patience}."},
		{"leased", awaited("lease"), "partitions {partitions} belong to id {id}, which no pod has: {bars}, and no strict pod works on them before."},
		{"ofDead", awaited("dead"), "partitions {partitions} belong to id {id}, whose pod {dead} is dead. Its next holder gets them; otherwise other ids do, {after} from when a pod knew " +
			"of its death, which verify cannot see (annotation " + assignment.PartitionFailoverAfterKey + ")."},
		{"awaiting", awaited("pod"), "partitions {partitions} belong to id {id}, which no pod has" + written + ". Its next holder gets them; otherwise other ids do, {after} (annotation " +
			assignment.PartitionFailoverAfterKey + ")."},
		{"paused", pausedPods, "pod {pod} with id {id} works on no partitions, which other ids get: {why}."},
		{"strategy", unknownStrategy, "strategy {have} is in force, which this idalloc does not know. A pod that does not know it keeps its partitions and moves none, and verify cannot tell " +
			"who should have what."},
		{"target", targetsOfNoID, "annotation " + assignment.PartitionTargetKey + " gives partitions {partitions} to id {id}, which there is not: the count is {count}, and sticky places them."},
	}
}

// notes returns the checks for things that are correct but may surprise.
func notes() []row {
	return append([]row{
		{"idle", moreIDsThanPartitions, "there are {count} ids for {partitions count} partitions, so {idle} or more ids have none"},
		{"rests", resters, "id {id} rests for another {left}, and pod {pod} waits for it (annotation {key})"},
		{"first", otherFirsts, "pod {pod} asks for machine numbers from {want}, and has one of those from {have}. They change when no live pod has one: scale to 0 (annotation {key})"},
		{"count", countChanges, "{what}; kubectl idalloc explain says what such a pod waits for"},
	}, leaseNotes()...)
}

// leaseNotes returns the notes about Leases. "explain" also prints them.
func leaseNotes() []row {
	return []row{
		{"leasesUnseen", leasesUnseen, "verify could not look at the Leases of strict mode: {why}"},
		{"leaseBars", leasesThatBar, "{bars}: another strict pod takes the id after that"},
	}
}

const unusedOwner = "{owner} in namespace {namespace} does not use idalloc, and never did: neither it nor any of its pods has an annotation of idalloc's. " +
	"If it should, the log of idalloc in one of its pods says why it has not got so far."

// Sentences returns each kind of finding and the sentence that verify prints for it, for a page. Words in braces are placeholders.
func Sentences() (all [][2]string) {
	for _, r := range findings() {
		all = append(all, [2]string{r.kind, r.sentence})
	}
	return all
}

// reportOf returns the report. It does no I/O: the same facts give the same report.
func reportOf(f *facts) Report {
	r := Report{
		Owner: f.owner.String(), Namespace: f.owner.Namespace, Count: f.owner.Count, Waiting: len(f.waiters), Findings: []Finding{}, Warnings: []string{},
	}
	for id := range f.lockers {
		if id < f.owner.Count {
			r.Held++
		}
	}
	if len(unused(f)) > 0 {
		r.OK, r.Unused, r.Warnings = true, true, []string{f.say(unusedOwner, about{})}
		return r
	}
	for _, row := range findings() {
		if row.kind != "silent" && !f.traced() {
			continue
		}
		for _, a := range row.find(f) {
			r.Findings = append(r.Findings, Finding{Kind: row.kind, ID: a.id, Pod: a.pod, Partitions: a.partitions.String(), Detail: f.say(row.sentence, a)})
		}
	}
	r.OK = len(r.Findings) == 0
	if f.traced() {
		r.Warnings, r.Notes, r.Partitions = append(r.Warnings, f.sayAll(warnings())...), f.sayAll(notes()), f.counted()
	}
	idOf := func(f Finding) int {
		if f.ID == nil {
			return -1
		}
		return *f.ID
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(idOf(a), idOf(b)), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Partitions, b.Partitions), cmp.Compare(a.Detail, b.Detail))
	})
	return r
}

// sayAll returns the sentences of checks, sorted.
func (f *facts) sayAll(rows []row) (sentences []string) {
	for _, row := range rows {
		for _, a := range row.find(f) {
			sentences = append(sentences, f.say(row.sentence, a))
		}
	}
	slices.Sort(sentences)
	return sentences
}

// say fills in a sentence: first the common words, then those of a.
func (f *facts) say(sentence string, a about) string {
	kind := strings.ToLower(f.owner.Kind)
	pairs := []string{
		"{pod}", a.pod, "{partitions}", a.partitions.String(), "{owner}", f.owner.String(), "{kind}", kind, "{name}", f.owner.Name, "{namespace}", f.owner.Namespace,
		"{delete}", f.deletion(a.pod), "{gc}", fmt.Sprintf("`idalloc gc %s/%s -n %s`", kind, f.owner.Name, f.owner.Namespace),
	}
	if a.id != nil {
		pairs = append(pairs, "{id}", number(*a.id))
	}
	for word, text := range a.with {
		pairs = append(pairs, "{"+word+"}", text)
	}
	return strings.NewReplacer(append(pairs, "{count}", number(f.owner.Count))...).Replace(f.plannedBy(sentence)) // if a has a count, it comes first and wins
}

// plannedBy replaces the pods by the controller in a sentence, if the controller plans for all live pods.
func (f *facts) plannedBy(sentence string) string {
	if len(f.those(func(p pod) bool { return p.live() })) == 0 || len(f.those(func(p pod) bool { return p.live() && p.assign() == "" })) > 0 {
		return sentence
	}
	return strings.NewReplacer(
		planner, "idalloc-controller", podsLog, checks+", and "+podsLog, taker, "idalloc-controller gives it to a pod that waits, or takes the name out.",
	).Replace(sentence)
}
