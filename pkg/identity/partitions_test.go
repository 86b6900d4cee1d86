package identity_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// sharing returns an identity that owns 0 to 15 and 40, and is to stop its work on 12.
func sharing() identity.Identity {
	id := assigned(3, 5)
	id.Partitions = identity.PartitionsOf(64, []identity.Share{
		{Set: placement.Of(40), Token: 1753647547040015999}, {Set: placement.Between(0, 15), Token: 1753647547040015123},
	}, placement.Of(12), 3)
	return id
}

func TestPartitionsAreInTheJSONOnlyOfAnInstanceThatWorksOnPartitions(t *testing.T) {
	const without = `{"state":"assigned","id":3,"count":5,"token":1753647547040015123,"tokenText":"1753647547040015123","pod":"worker-1","namespace":"shop",` +
		`"owner":{"apiVersion":"apps/v1","kind":"Deployment","name":"worker"}`
	for want, id := range map[string]identity.Identity{
		without + `}`: assigned(3, 5),
		without + `,"partitions":{"count":64,"owned":"0-11,13-15,40","stopping":"12","stop":3,` +
			`"tokens":{"0-11":1753647547040015123,"13-15":1753647547040015123,"40":1753647547040015999},"tokenTexts":{"0-11":"1753647547040015123","13-15":"1753647547040015123","40":"1753647547040015999"}}}`: sharing(),
	} {
		got, err := json.Marshal(id)
		if err != nil || string(got) != want {
			t.Errorf("%s (%v)\nwant %s", got, err, want)
		}
		var back identity.Identity
		if err := json.Unmarshal(got, &back); err != nil || back != id {
			t.Errorf("%s came back as %+v, %v", got, back, err)
		}
	}
}

func TestWhatIsToStopIsNotOwned(t *testing.T) {
	p := sharing().Partitions
	if got := p.Owned().String(); got != "0-11,13-15,40" {
		t.Errorf("owned is %s", got)
	}
	if got := p.Stopping().String(); got != "12" {
		t.Errorf("stopping is %s", got)
	}
	if token, ok := p.Token(12); ok {
		t.Errorf("what is to stop has the token %d", token)
	}
	for k, want := range map[int]int64{0: 1753647547040015123, 15: 1753647547040015123, 40: 1753647547040015999} {
		if token, ok := p.Token(k); !ok || token != want {
			t.Errorf("partition %d has the token %d, %t", k, token, ok)
		}
	}
	if s := p.Shares(); len(s) != 2 || s[0].Set.String() != "0-11,13-15" || s[1].Set.String() != "40" {
		t.Errorf("the shares are %+v", s)
	}
}

func TestWithoutAnIDNothingIsOwned(t *testing.T) {
	got := sharing().Without(identity.StateFenced).Partitions
	if want := identity.PartitionsOf(64, nil, placement.Set{}, 3); got != want || !got.Enabled() {
		t.Errorf("%+v", got)
	}
	if got := assigned(3, 5).Without(identity.StateFenced).Partitions; got != (identity.Partitions{}) || got.Enabled() || !got.Owned().Empty() {
		t.Errorf("an instance without partitions has %+v", got)
	}
	var id identity.Identity // another client wrote it
	text := `{"state":"draining","id":null,"count":5,"stop":2,"partitions":{"count":64,"owned":"7","stopping":"8","stop":3,"tokens":{"7":1}}}`
	if err := json.Unmarshal([]byte(text), &id); err != nil || !id.Partitions.Owned().Empty() || !id.Partitions.Stopping().Empty() || id.Stop != 2 {
		t.Errorf("%+v, %v", id, err)
	}
}

// However a set came about, it is the same.
func TestEqualPartitionsAreEqual(t *testing.T) {
	a := identity.PartitionsOf(8, []identity.Share{{Set: placement.Of(0, 1), Token: 5}, {Set: placement.Of(2), Token: 5}}, placement.Set{}, 0)
	b := identity.PartitionsOf(8, []identity.Share{{Set: placement.Between(0, 2), Token: 5}}, placement.Set{}, 0)
	if a != b {
		t.Errorf("%+v is not %+v", a, b)
	}
	if c := identity.PartitionsOf(8, []identity.Share{{Set: placement.Between(0, 2), Token: 6}}, placement.Set{}, 0); a == c {
		t.Error("other tokens make no difference")
	}
}

func TestPartitionsThatContradictEachOtherAreRefused(t *testing.T) {
	for _, text := range []string{
		`{"count":8,"owned":"2-1","stopping":"","stop":0,"tokens":{}}`,
		`{"count":8,"owned":"","stopping":"x","stop":0,"tokens":{}}`,
		`{"count":8,"owned":"1","stopping":"","stop":0,"tokens":{"x":1}}`,
		`{"count":8,"owned":"1","stopping":"","stop":0,"tokens":["1"]}`,
		`{"count":8,"owned":"1","stopping":"","stop":0}`,
		`{"count":8,"owned":"","stopping":"","stop":0,"tokens":{"1":5}}`,
		`{"count":8,"owned":"1-2","stopping":"2","stop":1,"tokens":{"1-2":5}}`,
		`{"count":8,"owned":"1-2","stopping":"","stop":1,"tokens":{"1-2":5,"2":6}}`,
	} {
		var id identity.Identity
		if err := json.Unmarshal([]byte(`{"state":"assigned","id":3,"count":5,"partitions":`+text+`}`), &id); err == nil {
			t.Errorf("%s is read as %+v", text, id.Partitions)
		}
	}
}

func TestFollowHearsOfPartitions(t *testing.T) {
	dir := t.TempDir()
	show := func(generation string, id identity.Identity) {
		t.Helper()
		b, err := json.Marshal(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{
			os.Mkdir(filepath.Join(dir, generation), 0o700), os.WriteFile(filepath.Join(dir, generation, identity.FileName), b, 0o600),
			os.Symlink(generation, filepath.Join(dir, "..next")), os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Symlink(filepath.Join("..data", identity.FileName), filepath.Join(dir, identity.FileName)); err != nil {
		t.Fatal(err)
	}
	show("a", assigned(3, 5))
	heard := make(chan identity.Identity)
	go func() { _ = identity.Follow(t.Context(), dir, func(id identity.Identity) { heard <- id }) }()
	if got := <-heard; got.Partitions.Enabled() {
		t.Errorf("%+v", got)
	}
	show("b", sharing())
	if got := <-heard; got != sharing() {
		t.Errorf("%+v", got)
	}
}
