package specs

import (
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

const (
	// atOnce is how many histories are played at a time.
	atOnce = 6
	// longest is the timeout of a spec that plays histories.
	longest = time.Hour
)

// BreakWrites declares a spec for each way in which a write of a program with internal/failpoint can fail. play has the N-th write of each process fail, and
// returns these writes, or none if no process has so many. A spec plays a history for each number, and expects more than least writes to fail.
func BreakWrites(text string, least int, play func(ctx ginkgo.SpecContext, fault string, number int) (hits []string)) {
	for fault, what := range map[string]string{
		"crash": "ends before the write", "after": "ends after it", "error": "gets an error", "lost": "gets no answer",
		"stall": "gets none for long, and the write was not sent", "late": "gets none, and the write arrives later",
	} {
		ginkgo.It(text+": it "+what, ginkgo.SpecTimeout(longest), func(ctx ginkgo.SpecContext) {
			all, beyond := 0, false
			for first := 1; !beyond && !ginkgo.CurrentSpecReport().Failed(); first += atOnce {
				hits := make([][]string, atOnce)
				var under sync.WaitGroup
				for i := range atOnce {
					under.Go(func() {
						defer ginkgo.GinkgoRecover()
						hits[i] = play(ctx, fault, first+i)
					})
				}
				under.Wait()
				for i, those := range hits {
					beyond = beyond || len(those) == 0
					all += len(those)
					ginkgo.GinkgoWriter.Printf("%s, write %d: %q\n", fault, first+i, those)
				}
			}
			ginkgo.GinkgoWriter.Printf("%s: %d writes\n", fault, all)
			gomega.Expect(all).To(gomega.BeNumerically(">", least), "the histories have more writes than that")
		})
	}
}
