// Package history proves with recorded histories that several instances behave like one. Clients in several processes write down what they
// asked, when, and what they were answered. A checker then looks for an order in which one program alone could have given all of these
// answers, one after the other. It starts no instance and no database.
//
// # Linearisable
//
// Each request takes effect at one moment between its call and its answer, as if nobody else did anything at that moment. So a request that
// is called after another was answered takes effect later. A history for which such moments exist is linearisable. If there are none, an
// instance has answered something that cannot be true: two machines have one address, or a write came after its time.
//
// # Requests without an answer
//
// The process was killed, or the database went away during the commit. Such a request may take effect at any moment from its call on, even
// after all others. So it stays open to the end of the history. That is weaker than an answer, and never wrong.
//
// Start reading at models.go: it says what one program alone would answer. journal.go writes and reads histories, and check.go asks
// github.com/anishathalye/porcupine.
package history

// Request is what a client asks for.
type Request struct {
	// Model is the name of the rules that hold for it, and Key the thing that it is about, such as an address.
	Model string `json:"model"`
	Key   string `json:"key"`
	Do    Do     `json:"do"`
	Who   string `json:"who"` // asks for the thing, such as a MAC
	// Epoch and Value belong to a write of a register.
	Epoch int64  `json:"epoch,omitempty"`
	Value string `json:"value,omitempty"`
}

// Do is what a request would do.
type Do string

// Take and Give are for things that have a holder, Write and Read for registers.
const (
	Take  Do = "take"
	Give  Do = "give"
	Write Do = "write"
	Read  Do = "read"
)

// Answer is what a client heard.
type Answer struct {
	Is Outcome `json:"is"`
	// Holder is who has the thing, as far as the answer says; for a register, who wrote last.
	Holder string `json:"holder,omitempty"`
	Other  string `json:"other,omitempty"` // the host that the machine has, in an answer about a claim
	// Epoch and Value are those that a register had.
	Epoch int64  `json:"epoch,omitempty"`
	Value string `json:"value,omitempty"`
}

// Outcome is what became of a request.
type Outcome string

// The outcomes. A request that failed has changed nothing, and says nothing about the thing. One that was refused names the holder, or
// nobody. What became of one that is unknown nobody has told its client.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused"
	Failed  Outcome = "failed"
	Unknown Outcome = "unknown"
)
