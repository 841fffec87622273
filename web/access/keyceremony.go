package access

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/securitykey"
)

// KeyCeremony is what a browser needs to register or use a security key.
type KeyCeremony struct {
	Options any    `json:"options" doc:"For navigator.credentials, as PublicKeyCredential.parseCreationOptionsFromJSON or parseRequestOptionsFromJSON read it"`
	Ticket  string `json:"ticket" doc:"Goes back with the answer of the key"`
}

// KeyAnswer is what a security key has answered.
type KeyAnswer struct {
	Ticket   string         `json:"ticket" maxLength:"8192"`
	Response map[string]any `json:"response" doc:"What PublicKeyCredential.toJSON gives"`
}

func (a *KeyAnswer) text() []byte {
	text, _ := json.Marshal(a.Response) // it came as JSON
	return text
}

// keyTicket is a ceremony that waits for the answer of a key. The client keeps it, signed.
type keyTicket struct {
	User    string              `json:"u"`
	Session securitykey.Session `json:"s"`
	At      time.Time           `json:"t"`
}

// The purposes of tickets: one for a registration is none for a login.
const (
	forRegistration = "security key"
	forLogin        = "security key login"
)

// keyTicketFor is how long a person has to touch the key.
const keyTicketFor = 5 * time.Minute

// ceremony is the answer to the beginning of one.
func (s *secondFactors) ceremony(purpose, user string, options json.RawMessage, session securitykey.Session) *rest.One[KeyCeremony] {
	return &rest.One[KeyCeremony]{Body: KeyCeremony{Options: options, Ticket: s.seal.sign(purpose, keyTicket{User: user, Session: session, At: s.now()})}}
}

// ticketOf reads a ticket of a user.
func (s *secondFactors) ticketOf(purpose, user, given string) (t keyTicket, err error) {
	// A ticket is for one user: the challenge that one user has got is no good for another.
	if !s.seal.signed(purpose, given, &t) || t.User != user {
		return t, inventory.Errorf(inventory.Invalid, "the ticket is not of this user").WithHint("begin again")
	}
	if age := s.now().Sub(t.At); age < 0 || age > keyTicketFor {
		return t, inventory.Errorf(inventory.Invalid, "it was begun more than %d minutes ago", int(keyTicketFor.Minutes())).WithHint("begin again")
	}
	return t, nil
}

// useKey checks the answer of a security key. A challenge is good for one login.
func (s *secondFactors) useKey(ctx context.Context, user, from, origin string, a *KeyAnswer) error {
	// The browser sets Origin by itself, and the key signs it. A page that imitates ours gets no answer that is good here.
	site, err := securitykey.SiteOf(origin)
	if err != nil {
		return err
	}
	t, err := s.ticketOf(forLogin, user, a.Ticket)
	if err != nil {
		return err
	}
	return s.useFactor(ctx, user, from, func(f *factors) error {
		// Old answers go first, so that the sealed row stays small. Their tickets have expired, and cannot come again.
		f.Answered = slices.DeleteFunc(f.Answered, func(x answered) bool { return s.now().Sub(x.At) > keyTicketFor })
		challenge := securitykey.ChallengeOf(&t.Session)
		if slices.ContainsFunc(f.Answered, func(x answered) bool { return x.Challenge == challenge }) {
			return inventory.Errorf(inventory.Unauthorized, "this answer of the security key was used before").WithHint("log in again")
		}
		keys, err := site.Answered(user, &t.Session, a.text(), f.Keys, s.now())
		if err != nil {
			return err
		}
		// The list is stored in this transaction. Of two requests with the same answer only one passes.
		f.Keys, f.Answered = keys, append(f.Answered, answered{Challenge: challenge, At: t.At})
		return nil
	})
}
