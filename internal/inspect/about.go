package inspect

import (
	"fmt"
	"strings"
	"time"

	"github.com/idalloc/idalloc/internal/hook"
	"github.com/idalloc/idalloc/pkg/placement"
)

const (
	// settlesWithin is how long a pod may leave a slot or partitions that the owner gives it. A process that has restarted repeats its list for ten seconds.
	settlesWithin = 15 * time.Second
	// startsWithin is the same for a pod whose program may not run yet. A pod that waits longer than this deserves a look.
	startsWithin = time.Minute
	// stopsWithin is how long work may continue after it was told to stop.
	stopsWithin = hook.DefaultTimeout + time.Minute
)

// about is one result of a check.
type about struct {
	id         *int
	pod        string
	partitions placement.Set
	with       words
}

// words are the words of a sentence other than the id, the pod and the partitions.
type words map[string]string

// each returns a result for each pod for which is returns true, sorted by pod name. is also returns the words for the sentence.
func (h *holding) each(is func(p pod) (words, bool)) (found []about) {
	for _, name := range h.names {
		if with, so := is(h.pods[name]); so {
			found = append(found, about{pod: name, with: with})
		}
	}
	return found
}

// Words of many sentences: another pod or owner, and how long or since when.
const (
	theOther = "other"
	theTime  = "since"
)

func on(id int, pod string, with words) about { return about{id: &id, pod: pod, with: with} }

func onPartitions(set placement.Set, p pod, with words) about {
	id := p.Receipt.Slot()
	return about{id: &id, pod: p.Name, partitions: set, with: with}
}

// some returns a if so is true, or nothing.
func some(so bool, a about) []about {
	if !so {
		return nil
	}
	return []about{a}
}

func short(d time.Duration) string { return d.Round(time.Second).String() }

// mostNamed is the largest number of names in a sentence.
const mostNamed = 5

// few joins the first words, and adds how many more there are.
func few(words []string) string { return fewOf(words, len(words)) }

// fewOf is few for a list of length number of which only the first words are given.
func fewOf(words []string, number int) string {
	if number <= mostNamed {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:mostNamed], ", "), number-mostNamed)
}
