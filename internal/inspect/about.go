package inspect

import (
	"fmt"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/placement"
)

const (
	// settlesWithin is how long a pod may leave alone what the owner gives to it. A process that has restarted lists again for ten seconds.
	settlesWithin = 15 * time.Second
	// startsWithin is the same for a pod whose program is not known to run. A pod that waits longer than this is worth a look.
	startsWithin = time.Minute
	// stopsWithin is how long work may go on that was told to stop: the default of --drain-timeout, and a minute.
	stopsWithin = 6 * time.Minute
)

// about is one thing that a check has found.
type about struct {
	id         *int
	pod        string
	partitions placement.Set
	with       words
}

// words are what a sentence says beside the id, the pod and the partitions.
type words map[string]string

// each returns what is so of the pods, in the order of their names. is returns further words, and whether it is so.
func (h *holding) each(is func(p pod) (words, bool)) (found []about) {
	for _, name := range h.names {
		if with, so := is(h.pods[name]); so {
			found = append(found, about{pod: name, with: with})
		}
	}
	return found
}

// Words of many sentences: another pod or owner, and for how long or since when.
const (
	theOther = "other"
	theTime  = "since"
)

func on(id int, pod string, with words) about { return about{id: &id, pod: pod, with: with} }

func onPartitions(set placement.Set, p pod, with words) about {
	id := p.Receipt.Slot()
	return about{id: &id, pod: p.Name, partitions: set, with: with}
}

// some returns one thing if it is so.
func some(so bool, a about) []about {
	if !so {
		return nil
	}
	return []about{a}
}

func short(d time.Duration) string { return d.Round(time.Second).String() }

// mostNamed is the largest number of names in a sentence.
const mostNamed = 5

// few joins the first words, and says how many more there are.
func few(words []string) string { return fewOf(words, len(words)) }

// fewOf is few for a list of number words of which only the first are known.
func fewOf(words []string, number int) string {
	if number <= mostNamed {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:mostNamed], ", "), number-mostNamed)
}
