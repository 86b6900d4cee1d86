package sample

import "testing"

func TestWithin(t *testing.T) {
	for n, want := range map[int]bool{1: false, 2: true, 3: true, 4: false} {
		if Within(n, 2, 4) != want {
			t.Errorf("%d: not %t", n, want)
		}
	}
}

func TestLoose(t *testing.T) {
	if Loose(1) == nil || Loose(100) != nil {
		t.Error("1 is enough, or 100 is not")
	}
}

func TestSum(t *testing.T) {
	if got := Sum(3); got != 6 {
		t.Errorf("%d", got)
	}
}

func TestLast(t *testing.T) {
	to := map[string]int{}
	if Last(to); len(to) != 2 || to["a"] != 2 || to["b"] != 3 {
		t.Errorf("%v", to)
	}
}

func TestUnsigned(t *testing.T) {
	if !Unsigned(0, 2) || !Unsigned(1, 2) || Unsigned(2, 2) {
		t.Error("0 or 1 is not below 2, or 2 is")
	}
}

func TestFind(t *testing.T) {
	if at, err := Find(3); at != 7 || err != nil {
		t.Error("3 is not at 7")
	}
	if _, err := Find(4); err == nil {
		t.Error("4 is found")
	}
}

func TestGrade(t *testing.T) {
	if Grade(1) != "in credit" {
		t.Error("1 is in debt")
	}
}
