package user

import "testing"

func TestNext(t *testing.T) {
	if Next(1) != 2 {
		t.Error("1 has another successor")
	}
}
