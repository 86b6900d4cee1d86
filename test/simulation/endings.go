package simulation

import (
	"strconv"
	"time"
)

// shutDown ends all processes; each of their goroutines must end, too, or the bubble never does.
func (w *world) shutDown() {
	var all []*process
	w.Alone(func() {
		w.scale(w.owner(), 0)
		all = w.running()
		for i, p := range all {
			if i%2 == 0 {
				p.terminate()
			}
		}
	})
	time.Sleep(time.Minute) //nolint:forbidigo // time is virtual
	w.Alone(func() {
		w.note("end", strconv.Itoa(w.steps))
		for _, p := range w.running() {
			all = append(all, p)
			p.kill()
		}
		for _, k := range w.pods {
			k.gone = true
		}
	})
	for _, p := range all {
		if p.launched {
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

// heal ends all faults that end by themselves.
func (w *world) heal() {
	w.quiet = true
	w.Step("heal")
	w.net = network{slower: 1}
	w.down, w.quota, w.server.Admission = false, false, false
	clear(w.server.Refusals)
	for _, n := range w.nodes {
		n.down, n.mute = false, false
		w.resumeNode(n)
		w.join(n, true)
	}
	w.disarm()
	w.release()
	w.startAll()
	for _, p := range w.running() {
		p.goOn()
		w.reconnect(p)
	}
}
