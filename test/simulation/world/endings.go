package world

import (
	"strconv"
	"time"
)

// ShutDown ends all processes; each of their goroutines must end, too, or the bubble never does.
func (w *World) ShutDown() {
	var all []*Process
	w.Alone(func() {
		w.Scale(w.Owner(), 0)
		all = w.Running()
		for i, p := range all {
			if i%2 == 0 {
				p.terminate()
			}
		}
	})
	time.Sleep(time.Minute) //nolint:forbidigo // time is virtual
	w.Alone(func() {
		w.Note("end", strconv.Itoa(w.Steps))
		for _, p := range w.Running() {
			all = append(all, p)
			p.kill()
		}
		for _, k := range w.pods {
			k.gone = true
		}
	})
	for _, p := range all {
		if p.Launched {
			p.waitForEnd()
		}
	}
	w.Alone(func() { w.over = true })
	time.Sleep(15 * time.Minute) //nolint:forbidigo // time is virtual
	w.Alone(func() {
		if w.leaked != "" {
			panic("simulation: a goroutine was left behind: " + w.leaked) // the bubble would never end
		}
	})
}

// Heal ends all faults that end by themselves.
func (w *World) Heal() {
	w.Quiet = true
	w.Step("heal")
	w.Network = Network{Slower: 1}
	w.Down, w.Quota, w.Server.Admission = false, false, false
	clear(w.Server.Refusals)
	for _, n := range w.Nodes {
		n.Down, n.Mute = false, false
		w.ResumeNode(n)
		w.Join(n, true)
	}
	w.disarm()
	w.release()
	w.startAll()
	for _, p := range w.Running() {
		p.GoOn()
		w.Reconnect(p)
	}
}
