package allocator

import (
	"testing"
	"time"
)

func TestAPodComplainsOnceAndAgainForAnotherReason(t *testing.T) {
	at := time.UnixMilli(1795219200123)
	told := complaint{what: "a free slot", at: at}
	for name, tc := range map[string]struct {
		complaint complaint
		what      string
		now       time.Time
		want      bool
	}{
		"the first time":                {complaint{}, "a free slot", at, true},
		"nothing to wait for":           {complaint{}, "", at, false},
		"the same reason, hours later":  {told, "a free slot", at.Add(5 * time.Hour), false},
		"another reason soon after":     {told, "room", at.Add(complainAgain - 1), false},
		"another reason after a while":  {told, "room", at.Add(complainAgain), true},
		"no reason any more, meanwhile": {told, "", at.Add(complainAgain), false},
	} {
		if got := tc.complaint.due(tc.what, tc.now); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
