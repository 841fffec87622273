// Package invite lets a machine become an instance. An admin makes an invitation on a running instance, and carries its code to the new
// machine. That machine shows the code over the link (package peer), and is handed secret.key and all that a start needs.
//
// Book has the invitations of the leader. They are in the database, too, so that a new leader knows them. Answerer answers new machines at
// the link of each instance, and asks the leader.
// Ask is the end of the new machine. Package newcomer checks and writes what that machine gets.
//
// Start reading at Code, then Book.HandOver.
//
// # What a code proves
//
// The pin in the code is that of the key behind the link. So the new machine speaks to an instance or to nobody. An attacker between the
// two learns and changes nothing. The secret in the code proves to the instance that an admin has sent the machine.
//
// # When a code is used up
//
// The first hand-over binds an invitation to the proof that the new machine has drawn at random. From then on, the code is worth nothing to
// others. The new machine checks what it was given only after the hand-over, because it needs the password of the database for that. If a
// check fails, an admin removes the cause, such as a closed port, and starts the command again. The machine then shows the same proof, and
// gets the same answer until the invitation ends.
//
// If the code were used up by the first hand-over alone, each such failure would cost a new code. If it were used up by a message that all
// checks have passed, a thief could have secret.key, too, and nobody would notice.
package invite

import (
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
)

// Request is what a new machine sends.
type Request struct {
	ID      string `json:"id"`     // Code.ID
	Secret  []byte `json:"secret"` // of the code
	Proof   []byte `json:"proof"`  // that the new machine has drawn, and sends again if it has to ask again
	Name    string `json:"name"`   // of the instance; "" leaves it to the invitation, and that to Host
	Host    string `json:"host"`   // name of the machine
	Version string `json:"version"`
}

// proofBytes is how long a proof is.
const proofBytes = 32

// HandOver is what a new machine gets.
type HandOver struct {
	Name        string         `json:"name"` // of the new instance
	Key         string         `json:"key"`  // the text of secret.key
	Fingerprint string         `json:"fingerprint"`
	Password    string         `json:"password,omitempty"` // of the database
	Settings    string         `json:"settings"`           // that all instances share: YAML as in a configuration file
	Files       []File         `json:"files,omitempty"`    // that these settings name
	Networks    []netip.Prefix `json:"networks"`           // on which the instance serves machines
	Version     string         `json:"version"`            // of its program
	// Where that instance listens, if another machine may listen there, too; else "".
	AdminListen    string `json:"adminListen,omitempty"`
	InstanceListen string `json:"instanceListen,omitempty"`
	// Notes say in sentences what an admin has to bring along in another way.
	Notes []string `json:"notes,omitempty"`
}

// MostFile bounds a File in bytes.
const MostFile = 1 << 20

// File is a file that settings name.
type File struct {
	Name string `json:"name"` // which of them
	Data []byte `json:"data"`
}

// State says what became of an invitation.
type State string

// The states of an invitation. Only an open one is good for a machine that was not here before.
const (
	Open      State = "open"
	Used      State = "used"      // handed over, to one machine
	Expired   State = "expired"   // nobody used it in time
	Withdrawn State = "withdrawn" // by an admin
	Refused   State = "refused"   // there were too many wrong tries with its id
)

const (
	lives                 = 15 * time.Minute // unless an admin wants another time
	livesLeast, livesMost = time.Minute, time.Hour
	keepsFor              = 24 * time.Hour // so that a late machine learns why it is refused
	mostOpen              = 16
	mostKept              = 128
	mostWrong             = 10 // tries with the id of an invitation and another secret
	mostGiven             = 20 // times that one machine is handed the same
)

// invitation is one as the Book has it.
type invitation struct {
	id, name, by      string
	hash              [32]byte // of the secret
	madeAt, expiresAt time.Time
	isWithdrawn       bool
	wrongN            int
	isBusy            bool // being handed over at this moment
	use
}

// use is what became of an invitation after the first hand-over.
type use struct {
	proof    [32]byte // its SHA-256
	usedAt   time.Time
	usedFrom netip.Addr
	usedAs   string
	givenN   int
}

func (i *invitation) isUsed() bool { return !i.usedAt.IsZero() }

func (i *invitation) state(now time.Time) State {
	switch {
	case i.isWithdrawn:
		return Withdrawn
	case i.wrongN >= mostWrong:
		return Refused
	case i.isUsed():
		return Used
	case !now.Before(i.expiresAt):
		return Expired
	}
	return Open
}

// over says why an invitation is worth nothing to a machine that shows a proof, nil if it is good.
func (i *invitation) over(proof [32]byte, now time.Time) error {
	again := "slipway instance invite makes another code"
	state := i.state(now)
	switch {
	case state == Open:
		return nil
	case state == Withdrawn:
		return inventory.Errorf(inventory.Forbidden, "the invitation was withdrawn").WithHint("%s", again)
	case state == Refused:
		return inventory.Errorf(inventory.Forbidden, "the invitation has ended after %d wrong codes", mostWrong).WithHint("%s", again)
	case state == Expired, !now.Before(i.expiresAt):
		return inventory.Errorf(inventory.Forbidden, "the code has expired: it was good until %s", i.expiresAt.UTC().Format(time.RFC3339)).
			WithHint("%s", again)
	case proof != i.proof:
		return inventory.Errorf(inventory.Forbidden, "the code was used by another machine, at %s from %s",
			i.usedAt.UTC().Format(time.RFC3339), i.usedFrom).
			WithHint("if that was not you, secret.key and the database's password are in wrong hands: see docs/security.md. Else: %s", again)
	case i.givenN >= mostGiven:
		return inventory.Errorf(inventory.Forbidden, "this machine has used the code %d times", mostGiven).WithHint("%s", again)
	}
	return nil
}
