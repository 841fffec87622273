package redfishtest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
)

// Fault is something that goes wrong. The first of a script that matches a request has it.
type Fault struct {
	Method string // "" for all
	Path   string // what the path contains; "" for all
	After  int    // requests that go well first
	Times  int    // how often; 0 for always
	Do     Effect
}

// Effect answers a request instead of the service, or with its help.
type Effect func(w http.ResponseWriter, r *http.Request, service http.Handler)

// Script replaces what goes wrong from now on.
func (s *Server) Script(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append([]Fault(nil), faults...)
}

// faultFor finds the fault that a request has, and uses it up.
func (s *Server) faultFor(r *http.Request) Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.script {
		f := &s.script[i]
		if f.Times < 0 || f.Method != "" && f.Method != r.Method || !strings.Contains(r.URL.Path, f.Path) {
			continue
		}
		if f.After > 0 {
			f.After--
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				f.Times = -1
			}
		}
		return f.Do
	}
	return nil
}

// Status answers with a status and headers, given as pairs, and no body.
func Status(code int, headers ...string) Effect {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

// Message answers with a status and one Redfish message.
func Message(code int, id, text string) Effect {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { complain(w, code, id, text) }
}

// Body answers 200 with a text.
func Body(text string) Effect {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}
}

// Huge answers with a document that is valid and has n bytes of text in it.
func Huge(n int) Effect {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		_, _ = io.WriteString(w, `{"Name":"`)
		for chunk := strings.Repeat("x", 1<<16); n > 0; n -= len(chunk) {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `"}`)
	}
}

// Slow waits before the service answers.
func Slow(d time.Duration) Effect {
	return func(w http.ResponseWriter, r *http.Request, service http.Handler) {
		select {
		case <-time.After(d):
		case <-r.Context().Done():
			return
		}
		service.ServeHTTP(w, r)
	}
}

// Hang never answers.
func Hang() Effect {
	return func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection is not seen
		<-r.Context().Done()
	}
}

// Drop closes the connection without an answer.
func Drop() Effect {
	return func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }
}

// Redirect sends elsewhere; a path stays on the host.
func Redirect(code int, to string) Effect {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) { http.Redirect(w, r, to, code) }
}

// Pretend answers that all went well, and does nothing.
func Pretend() Effect { return Status(http.StatusNoContent) }

// Expire ends all sessions before the service answers.
func (s *Server) Expire() Effect {
	return func(w http.ResponseWriter, r *http.Request, service http.Handler) {
		s.EndSessions()
		service.ServeHTTP(w, r)
	}
}

// Overtake has someone else change the document first, and refuses.
func (s *Server) Overtake() Effect {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		s.Touch()
		complain(w, http.StatusPreconditionFailed, "Base.1.18.PreconditionFailed", "The ETag supplied did not match the ETag required to change this resource.")
	}
}

// Echo refuses with a message that repeats what was sent, as some controllers do with what they do not like.
func Echo(code int) Effect {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<16))
		var sent map[string]any
		_ = json.Unmarshal(body, &sent)
		text := "The request is not valid:"
		for k, v := range sent {
			if s, ok := v.(string); ok {
				text += " the value " + s + " for the property " + k + "."
			}
		}
		complain(w, code, "Base.1.8.PropertyValueFormatError", text+" Authorization: "+r.Header.Get("Authorization")+" Token: "+r.Header.Get("X-Auth-Token"))
	}
}

// complain answers with a Redfish error.
func complain(w http.ResponseWriter, code int, id, text string) {
	reply(w, code, doc{"error": doc{
		"code": "Base.1.8.GeneralError", "message": "A general error has occurred. See ExtendedInfo for more information",
		"@Message.ExtendedInfo": []doc{{"MessageId": id, "Message": text, "Severity": "Warning"}},
	}})
}

func reply(w http.ResponseWriter, code int, d doc) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(d)
}
