package world

import (
	"time"

	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// Policies judge what idalloc writes, as admission policies do. They return why one of them refuses it, empty if none does.
type Policies func(by Account, w server.Write) string

// Account is whose token a request has. Pod and UID are those of the pod that has it, empty for the controller.
type Account struct {
	Controls, Agent bool
	Pod, UID        string
}

// Name is that of the service account.
func (a Account) Name() string {
	if a.Controls {
		return "system:serviceaccount:idalloc-system:idalloc-controller"
	}
	return "system:serviceaccount:" + server.Namespace + ":idalloc"
}

// judged notes what a policy refuses to idalloc: what one part must write, no other part may forbid.
func (w *World) judged(write server.Write) string {
	if w.Policies == nil || w.Serving == nil || !w.Serving.Controls && w.Serving.UID == "" { // a person runs gc
		return ""
	}
	by := Account{Controls: w.Serving.Controls}
	if !by.Controls {
		by.Pod, by.UID = w.Serving.Pod, w.Serving.UID
		pod := w.Server.Get(object.Pods, by.Pod)
		by.Agent = pod != nil && IsAgent(pod.Object)
	}
	says := w.Policies(by, write)
	if by.Agent && w.raced(by, says) {
		return says
	}
	if says != "" {
		w.Forbidden = append(w.Forbidden, write.Operation+" of "+write.Kind.Resource+" "+write.Name+" by "+w.Serving.ID+": "+says)
		w.Step("a policy refuses", w.Forbidden[len(w.Forbidden)-1])
	}
	return says
}

// raced reports whether an agent's write may have been refused because another program changed what the controller says on the pod while it was under
// way. The agent hears of that, and does not write it again.
func (w *World) raced(by Account, says string) bool {
	const hears = 10 * time.Minute
	first, again := w.refused[by]
	switch {
	case says == "":
		delete(w.refused, by)
		return false
	case !again:
		w.refused[by], first = w.Now(), w.Now()
	}
	return w.Now()-first < hears
}
