package server

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"strconv"

	"github.com/idalloc/idalloc/test/simulation/object"
)

// Failure is an API server's refusal.
type Failure struct {
	Code            int
	Reason, Message string
	// Details name the object that does not exist.
	Details object.Object
}

// Answer tells the client of the refusal.
func (f Failure) Answer() Answer { return Answer{Code: f.Code, Body: f.body()} }

func (f Failure) body() []byte {
	status := object.Object{
		"kind": "Status", "apiVersion": "v1", object.Metadata: object.Object{}, "status": "Failure",
		"message": f.Message, "reason": f.Reason, "code": f.Code,
	}
	if f.Details != nil {
		status["details"] = f.Details
	}
	return object.Encode(status)
}

// Answer is what the server says to a request.
type Answer struct {
	Code int
	Body []byte
	// Page is what the body of a list says, nil in other answers.
	Page *Page
	// Stream is what a watch reads, instead of a body.
	Stream *Stream
	// Content is the body's type, JSON if it is empty.
	Content string
	Err     error // a broken connection, instead of an answer
	// RetryAfter is the header of that name, none if it is empty.
	RetryAfter string
}

// Page is a page of a list.
type Page struct {
	Objects []*Version
	// RV is the moment that the list shows, and More: there are more pages.
	RV   int64
	More bool
}

// Refuse is an answer that is a refusal.
func Refuse(code int, reason, message string) Answer {
	return Failure{Code: code, Reason: reason, Message: message}.Answer()
}

// Response is what the client of the HTTP request gets.
func (a Answer) Response(req *http.Request) *http.Response {
	response := &http.Response{
		StatusCode: a.Code, Status: strconv.Itoa(a.Code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {cmp.Or(a.Content, "application/json")}}, Request: req,
		Body: io.NopCloser(bytes.NewReader(a.Body)), ContentLength: int64(len(a.Body)),
	}
	if a.Stream != nil {
		response.Body, response.ContentLength = a.Stream, -1
	}
	if a.RetryAfter != "" {
		response.Header.Set("Retry-After", a.RetryAfter)
	}
	return response
}
