package identity

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/idalloc/idalloc/pkg/placement"
)

// Partitions are the partitions on which an instance may work, in addition to its work under its id. Like an Identity, it is comparable. The zero value
// belongs to an instance that does not work on partitions.
type Partitions struct {
	// Count is the number of partitions of the workload. It is 0 if there are none yet.
	Count int
	// Stop is the number of the last stop. A program that reports over HTTP that it has stopped sends it. It only grows: a stop that is called off does not
	// free its number.
	Stop int

	enabled bool
	// The sets and the tokens are strings, so that == compares them. Each has one canonical form.
	owned, stopping, tokens string
}

// Share is a set of partitions with one fencing token.
type Share struct {
	Set placement.Set
	// Token is higher for every later owner of each of these partitions. It may be above 2^53, where a float64 rounds it.
	Token int64
}

// PartitionsOf returns the partitions of an instance that works on partitions. shares is what it may work on, and stopping is removed from that.
func PartitionsOf(count int, shares []Share, stopping placement.Set, stop int) Partitions {
	var owned placement.Set
	tokens := map[int64]placement.Set{}
	for _, s := range shares {
		set := s.Set.Minus(stopping).Minus(owned)
		owned, tokens[s.Token] = owned.Union(set), tokens[s.Token].Union(set)
	}
	return Partitions{
		Count: count, Stop: stop, enabled: true, owned: owned.String(), stopping: stopping.String(), tokens: tokensText(tokens),
	}
}

// tokensText returns the JSON of tokens: one key for each range of partitions with the same token, in ascending order.
func tokensText(tokens map[int64]placement.Set) string {
	type run struct {
		first, last int
		token       int64
	}
	var runs []run
	for token, set := range tokens {
		for first, last := range set.Ranges() {
			runs = append(runs, run{first, last, token})
		}
	}
	slices.SortFunc(runs, func(a, b run) int { return cmp.Compare(a.first, b.first) })
	var b strings.Builder
	b.WriteByte('{')
	for i, r := range runs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + placement.Between(r.first, r.last).String() + `":` + strconv.FormatInt(r.token, 10))
	}
	b.WriteByte('}')
	return b.String()
}

// Enabled reports whether the instance works on partitions. It may own none at the moment.
func (p Partitions) Enabled() bool { return p.enabled }

// Owned returns the partitions on which the instance may work. Those on which it must stop are excluded, so a program may act on this set alone. It is
// empty while no id is assigned.
func (p Partitions) Owned() placement.Set { return parsed(p.owned) }

// Stopping returns the partitions on which work must stop. No other id owns them before idalloc knows that the work has stopped, unless they were lost.
func (p Partitions) Stopping() placement.Set { return parsed(p.stopping) }

// Shares returns what is owned with its tokens, in ascending order of the first partition. Each token occurs once.
func (p Partitions) Shares() []Share {
	tokens, err := parseTokens(p.tokens)
	if err != nil {
		return nil // it was checked when it was made
	}
	shares := make([]Share, 0, len(tokens))
	for token, set := range tokens {
		shares = append(shares, Share{set, token})
	}
	slices.SortFunc(shares, func(a, b Share) int { return cmp.Compare(first(a.Set), first(b.Set)) })
	return shares
}

// Token returns the fencing token of a partition. ok is false if the instance may not work on it.
func (p Partitions) Token(partition int) (token int64, ok bool) {
	for _, s := range p.Shares() {
		if s.Set.Contains(partition) {
			return s.Token, true
		}
	}
	return 0, false
}

// none returns p with nothing owned and nothing to stop.
func (p Partitions) none() Partitions {
	if !p.enabled {
		return Partitions{}
	}
	return PartitionsOf(p.Count, nil, placement.Set{}, p.Stop)
}

func first(s placement.Set) int {
	for k := range s.All() {
		return k
	}
	return 0
}

// parsed returns the set of a text that was checked before.
func parsed(text string) placement.Set {
	set, _ := parseSet(text)
	return set
}

// parseSet reads a set of any partitions: for a moment some may be at or above a count that was lowered.
func parseSet(text string) (placement.Set, error) { return placement.Parse(text, math.MaxInt32) }

func parseTokens(text string) (map[int64]placement.Set, error) {
	var keys map[string]int64
	tokens := map[int64]placement.Set{}
	if text == "" {
		return tokens, nil
	}
	if err := json.Unmarshal([]byte(text), &keys); err != nil {
		return nil, err
	}
	for key, token := range keys {
		set, err := parseSet(key)
		if err != nil {
			return nil, err
		}
		tokens[token] = tokens[token].Union(set)
	}
	return tokens, nil
}

type partitionsWire struct {
	Count    int             `json:"count"`
	Owned    string          `json:"owned"`
	Stopping string          `json:"stopping"`
	Stop     int             `json:"stop"`
	Tokens   json.RawMessage `json:"tokens"`
	// TokenTexts has the same tokens as texts, for readers whose numbers are float64.
	TokenTexts map[string]string `json:"tokenTexts"`
}

func (p Partitions) wire() *partitionsWire {
	if !p.enabled {
		return nil
	}
	texts := map[string]string{}
	for _, s := range p.Shares() {
		for first, last := range s.Set.Ranges() {
			texts[placement.Between(first, last).String()] = strconv.FormatInt(s.Token, 10)
		}
	}
	return &partitionsWire{Count: p.Count, Owned: p.owned, Stopping: p.stopping, Stop: p.Stop, Tokens: json.RawMessage(p.tokens), TokenTexts: texts}
}

// partitions reads the output of wire. It returns an error for data that would be unsafe to act on.
func (w *partitionsWire) partitions() (Partitions, error) {
	if w == nil {
		return Partitions{}, nil
	}
	owned, err := parseSet(w.Owned)
	if err != nil {
		return Partitions{}, fmt.Errorf("identity: owned: %w", err)
	}
	stopping, err := parseSet(w.Stopping)
	if err != nil {
		return Partitions{}, fmt.Errorf("identity: stopping: %w", err)
	}
	tokens, err := parseTokens(string(w.Tokens))
	if err != nil {
		return Partitions{}, fmt.Errorf("identity: tokens: %w", err)
	}
	shares, total := make([]Share, 0, len(tokens)), 0
	for token, set := range tokens {
		shares, total = append(shares, Share{set, token}), total+set.Len()
	}
	p := PartitionsOf(w.Count, shares, stopping, w.Stop)
	if !p.Owned().Equal(owned) || total != owned.Len() {
		return Partitions{}, errors.New("identity: the partitions that are owned are not those that have tokens, or some of them are to stop")
	}
	return p, nil
}
