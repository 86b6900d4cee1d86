package receipt

import "testing"

func TestAPodOfALaterContractIsNewer(t *testing.T) {
	for text, want := range map[string]bool{"1": false, "0": false, "2": true, "": true, "1.5": true, "99999999999999999999": true} {
		if got := Newer(map[string]string{ContractKey: text}); got != want {
			t.Errorf("contract %q: newer is %t", text, got)
		}
	}
	if Newer(nil) {
		t.Error("without a number it is the first one")
	}
}
