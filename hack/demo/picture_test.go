package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

const recorded = "../../docs/figures/demo"

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // a file of the project
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestThePictureIsThatOfTheRecord(t *testing.T) {
	svg := picture(read(t, recorded+".txt"))
	if read(t, recorded+".svg") != svg {
		t.Error("docs/figures/demo.svg is another one: run make picture")
	}
	for _, text := range []string{"1/4 ", "held         I am 4 of 5", "Two pods are lost", "I am 1 of 8  new", "samples of 10 pods compared"} {
		if !strings.Contains(svg, text) {
			t.Errorf("it does not show %q", text)
		}
	}
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		// A browser collapses the spaces of a text without this attribute of its own.
		if text, is := token.(xml.StartElement); is && text.Name.Local == "text" && !slices.ContainsFunc(text.Attr, func(a xml.Attr) bool {
			return a.Name.Local == "space" && a.Value == "preserve"
		}) {
			t.Errorf("a text of the picture loses its columns: %v", text)
		}
	}
}

// The record cannot be made in a test, but it must have what the demo says in any case.
func TestTheRecordTellsTheStoryOfToday(t *testing.T) {
	text := read(t, recorded+".txt")
	for _, p := range (&stage{}).phases() {
		if !strings.Contains(text, p.title+"\n  $ "+p.command+"\n  "+p.look+"\n") {
			t.Errorf("docs/figures/demo.txt has no part %q as the demo tells it: run make picture", p.title)
		}
	}
}
