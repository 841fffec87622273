package inventory

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// SessionID names one boot attempt: 128 random bits in hex. It is in every URL of that boot, so that a sender that knows it
// is that boot or has watched it.
type SessionID string

// BootSession is one boot attempt of one machine: what it asked, what was decided and why, how far it got.
type BootSession struct {
	ID       SessionID  `json:"id"`
	HostID   HostID     `json:"hostID"`
	MAC      MAC        `json:"mac"`
	Address  netip.Addr `json:"address,omitzero"` // what our DHCP gave it
	Arch     Arch       `json:"arch,omitempty"`
	Firmware Firmware   `json:"firmware,omitempty"`
	Subnet   string     `json:"subnet,omitempty"`
	Port     string     `json:"port,omitempty"`  // switch port that a relay named; see PortName
	Proof    Proof      `json:"proof,omitempty"` // that the machine is the host

	Boot    string `json:"boot"`   // the decision: image, disk, wait, park or ignore
	Reason  string `json:"reason"` // why, in words for the admin
	Refs    []Ref  `json:"-"`      // what Reason names besides the host
	Profile string `json:"profile,omitempty"`
	Image   string `json:"image,omitempty"`

	Config    Digest `json:"config,omitempty"`    // of the Rendering it was given
	Operation string `json:"operation,omitempty"` // that this boot is a step of

	MachineUUID string `json:"machineUUID,omitempty"` // as our agent read it from the machine in this boot

	Step      string    `json:"step"` // how far it got: the kind of its latest event that is a step
	Outcome   Outcome   `json:"outcome,omitempty"`
	StartedAt time.Time `json:"startedAt"`
	LastAt    time.Time `json:"lastAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
}

// Outcome is how a boot session ended; empty while it runs.
type Outcome string

// The outcomes of a boot session.
const (
	OutcomeArrived   Outcome = "arrived"   // the booted system reported up
	OutcomeDisk      Outcome = "disk"      // sent to its own disk, as decided
	OutcomeRefused   Outcome = "refused"   // told why not, and did not come back
	OutcomeAbandoned Outcome = "abandoned" // went silent, or a newer boot replaced it
	OutcomeFailed    Outcome = "failed"    // reported a failure
)

// Proof is what shows that a machine that boots under the MAC of a running host is that host. It is empty where there is
// nothing to prove, because no system of the host runs. A proof that is bound to the machine's TPM would stand above all of
// these.
type Proof string

// The proofs.
const (
	ProofNone   Proof = "none"   // nothing shows it: the boot is given no secrets, and what it reports changes nothing
	ProofOrder  Proof = "order"  // an operation or a person had the host boot
	ProofPower  Proof = "power"  // its controller saw that it was off or restarted
	ProofPort   Proof = "port"   // it is on the switch port of that MAC
	ProofPerson Proof = "person" // a person says so
)

// Event is a fact that happened. Events are only ever added; the timeline of a host is its events.
type Event struct {
	ID        int64     `json:"id"` // grows with every event; what SSE resumes from
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"` // such as dhcp.offer or boot.decided; see EventKinds
	HostID    HostID    `json:"hostID,omitempty"`
	SessionID SessionID `json:"sessionID,omitempty"`
	MAC       MAC       `json:"mac,omitempty"`
	Subject   string    `json:"subject,omitempty"` // what it is about when not a host: noun/name, such as subnet/rack1
	Detail    string    `json:"detail"`            // one line for people
	Data      any       `json:"data,omitempty"`    // the same in fields
	Refs      []Ref     `json:"-"`                 // what Detail and Data name besides the host and the subject
}

// References implements Referrer.
func (e *Event) References() []Ref {
	noun, name, _ := strings.Cut(e.Subject, "/")
	r, is := RefTo(noun, name)
	if !is || slices.ContainsFunc(e.Refs, func(o Ref) bool { return o.Kind == r.Kind && o.Name == r.Name }) { // the store has added it
		return e.Refs
	}
	return append(e.Refs[:len(e.Refs):len(e.Refs)], r)
}

// The kinds of events. Those that a boot passes through in this order are its steps.
const (
	EventSessionStarted = "session.started"
	EventDHCPDiscover   = "dhcp.discover"
	EventDHCPOffer      = "dhcp.offer"
	EventDHCPRequest    = "dhcp.request"
	EventDHCPAck        = "dhcp.ack"
	EventDHCPNak        = "dhcp.nak"
	EventLoaderStarted  = "loader.started"
	EventLoaderSent     = "loader.sent"
	EventLoaderFailed   = "loader.failed"
	EventScriptAsked    = "script.asked"
	EventBootDecided    = "boot.decided"
	EventArtefactSent   = "artefact.sent"
	EventArtefactFailed = "artefact.failed"
	EventConfigSent     = "config.sent"
	EventConfigRefused  = "config.refused"
	// EventReferenceRefused: somebody saved what names a secret or join target that is not for it.
	EventReferenceRefused = "reference.refused"
	EventSessionRefused   = "session.refused" // somebody used the URL of a boot who is not its machine
	EventReported         = "boot.reported"
	EventReportRefused    = "boot.report-refused" // a boot told what it was not decided to do, or what is long over
	EventAgentStarted     = "agent.started"       // our agent runs
	EventAgentReported    = "agent.reported"
	EventAgentLog         = "agent.log"
	EventAgentRefused     = "agent.refused" // somebody spoke as our agent who is not the agent of that boot
	EventSessionEnded     = "session.ended"

	EventHostDiscovered = "host.discovered"
	EventHostChanged    = "host.changed"
	EventHostDeleted    = "host.deleted"
	EventHostConfirmed  = "host.confirmed" // a person says that a machine is the host
	EventClaimed        = "host.claimed"
	EventFreed          = "host.freed"
	EventInspected      = "host.inspected"
	EventWiped          = "host.wiped"
	EventPower          = "power.changed"
	EventBMC            = "bmc.checked"
	EventOperation      = "operation" // started, went on, ended: see Data
	EventMachine        = "machine"   // changed: Subject is machine/<name>
	// EventBootstrapWanted: a machine is booting and its bootstrap data are not here. Subject is machine/<name>.
	EventBootstrapWanted = "bootstrap.wanted"
	EventStateChanged    = "state.changed"
	EventTakeRefused     = "machine.takeover-refused" // somebody tried to take a machine over by its claim
	EventCluster         = "cluster"                  // an attached cluster has another state: Subject is cluster/<name>
	EventDHCPDecline     = "dhcp.decline"
	EventDHCPRefused     = "dhcp.refused"    // a limit for unknown machines left it without an address
	EventDHCPBeside      = "dhcp.beside"     // another server gave it an address
	EventDHCPUnanswered  = "dhcp.unanswered" // it asks for an address, and is given none
	EventDHCPRelease     = "dhcp.release"
	EventConflict        = "address.conflict"
	EventJoinRefused     = "join.refused" // a join token was used for something that it is not for
	EventIssueOpened     = "issue.opened"
	EventIssueClosed     = "issue.closed"
	EventChanged         = "inventory.changed" // subnet, reservation, image, profile, token: see Subject
	EventServer          = "server"            // started, stopped, self-check
	EventDuty            = "duty"              // a duty has another holder: Subject is duty/<name>
	EventInstance        = "instance"          // started, stopped: Subject is instance/<name>
)

// Steps returns the kinds of events that show how far a boot has come, in order.
func Steps() []string {
	return []string{
		EventSessionStarted, EventDHCPDiscover, EventDHCPOffer, EventDHCPRequest, EventDHCPAck, EventLoaderStarted,
		EventLoaderSent, EventScriptAsked, EventBootDecided, EventArtefactSent, EventConfigSent, EventAgentStarted, EventAgentReported, EventReported,
		EventSessionEnded,
	}
}

// Severity ranks issues.
type Severity string

// The severities.
const (
	SeverityWarning Severity = "warning" // works, but look at it
	SeverityError   Severity = "error"   // a machine is stopped by it
)

// Issue is an open problem with a host or a subnet. It opens and closes by rule; Key makes opening it twice harmless.
type Issue struct {
	ID       int64     `json:"id"`
	Key      string    `json:"key"` // type and what it is about, unique among open issues
	Type     string    `json:"type"`
	Severity Severity  `json:"severity"`
	HostIDs  []HostID  `json:"hostIDs,omitempty"` // every host involved
	Subnet   string    `json:"subnet,omitempty"`
	Instance string    `json:"instance,omitempty"` // the server whose machine has the problem; "" if it is not about one server
	Cause    string    `json:"cause"`
	Hint     string    `json:"hint"`
	OpenedAt time.Time `json:"openedAt"`
	SeenAt   time.Time `json:"seenAt"` // last time the rule found it again
	SeenN    int       `json:"seenN"`
	ClosedAt time.Time `json:"closedAt,omitzero"`
	Refs     []Ref     `json:"-"` // what Cause and Hint name besides the hosts
}

// The types of issues.
const (
	IssueIdentityConflict  = "identity-conflict"   // two hosts share a UUID or serial
	IssueAddressConflict   = "address-conflict"    // somebody else answers for one of our addresses
	IssueTwice             = "held-twice"          // two machines have one address or name, or a machine has one of the network's
	IssueForeignDHCP       = "foreign-dhcp"        // another DHCP server answers on a network that is ours
	IssueWrongPort         = "wrong-port"          // a machine is on another switch port than it is pinned to
	IssuePoolExhausted     = "pool-exhausted"      // no address left to lease
	IssueBootRefused       = "boot-refused"        // a boot could not be given: image, loader, memory
	IssueTargetUnreachable = "target-unreachable"  // a join target's API server does not answer
	IssueCluster           = "cluster-unreachable" // an attached cluster does not answer, or its controllers cannot run
	IssueJoinRefused       = "join-refused"        // a join token was used for something that it is not for
	IssueSecretRefused     = "secret-refused"      // somebody asked for a host's secrets who may not have them
	IssueUnconfirmed       = "boot-unconfirmed"    // nothing shows that a machine that boots as a running host is that host
	IssueSessionRefused    = "session-refused"     // somebody used the URL of a host's boot who is not that host
	IssueBootLoop          = "boot-loop"           // too many boots without an arrival
	IssueInspection        = "inspection-failed"   // our agent could not look at the hardware
	IssueHardware          = "hardware-changed"    // it is not what it was
	IssueGolden            = "hardware-lacking"    // it is not what it should be
	IssueDriver            = "driver-missing"      // our agent has no driver for a device
	IssueInstall           = "install-failed"
	IssueWipe              = "wipe-failed"
	IssueFence             = "fence-failed" // its old operating system may still run
	IssueBMC               = "bmc-unreachable"
	IssueManual            = "manual-action" // a person has to do something
	IssueOverdue           = "overdue"       // the next event did not come in time
	IssueBootOrder         = "boot-order"    // the machine boots its old system instead of the network
	IssueReplaced          = "host-replaced" // another machine has one of its NICs
	IssueBurnIn            = "burn-in-failed"
	IssueDiskMissing       = "disk-missing"          // an earlier inspection found a disk that is gone
	IssueInstallLoop       = "install-loop"          // too many installations in too short a time
	IssueStalled           = "boot-stalled"          // a boot has stopped: its next sign did not come in time
	IssueDisk              = "disk-full"             // the data directory has no room
	IssueStore             = "store-unwritable"      // the database cannot be written: locked, read-only, disk full
	IssueDatabase          = "database-unreachable"  // the PostgreSQL server cannot be reached
	IssueNotDurable        = "database-not-durable"  // acknowledged changes can be lost: fsync off, no synchronous standby
	IssueLostChanges       = "database-lost-changes" // acknowledged changes are gone after a failover
	IssueOneCopy           = "image-on-one-instance" // no other instance of the database has files of an image
	IssueInstance          = "instance-silent"       // another instance of the database gives no sign of life
	IssueCutOff            = "instance-cut-off"      // another instance of the database gets no answer from the one with the engine
	IssueClock             = "clock-jumped"          // the clock was set by more than a minute
	IssueClockWrong        = "clock-wrong"           // the clocks of an instance and of the database are more than a minute apart
	IssueInterface         = "interface-unserved"    // nobody is answered on a boot interface: down, without address or subnet
	IssueArtefact          = "artefact-damaged"      // a file of an image is missing or not what it was
	IssueShed              = "events-shed"           // events and reports were not stored: a flood, or a disk that is nearly full
	IssueFiles             = "files-exhausted"       // the server cannot open another file: no file descriptor is left
	IssueCertificate       = "certificate-problem"   // a certificate ends soon, has ended, cannot be read, or is for other names
	IssueLoader            = "loader-problem"        // a boot loader is missing, or not the one that the admin has put there
	IssuePort              = "port-taken"            // another program has a port, so that nobody is answered there
)

// Token lets a program or person into the API. Only a SHA-256 of its secret is stored.
type Token struct {
	Name   string `json:"name"`
	Hash   string `json:"-"`              // hex SHA-256 of the secret
	User   string `json:"user,omitempty"` // who answers for it; it never may more than that user may at the time
	Grants Grants `json:"grants"`
	// Cluster is the UID of the Kubernetes cluster whose controllers come in with it; such a token has no grants and no user.
	Cluster string `json:"cluster,omitempty"`
	// Namespaces are those of the cluster whose objects it speaks for; empty means all.
	Namespaces []string  `json:"namespaces,omitempty"`
	CreatedAt  time.Time `json:"createdAt"`
	ExpiresAt  time.Time `json:"expiresAt,omitzero"`
	LastUsedAt time.Time `json:"lastUsedAt,omitzero"`
}

// ValidateCluster checks what binds a token to a cluster.
func (t *Token) ValidateCluster() error {
	switch {
	case t.Cluster == "" && len(t.Namespaces) > 0:
		return Errorf(Invalid, "token %s names namespaces of no cluster", t.Name).WithHint("name the cluster as well: --cluster")
	case t.Cluster == "":
		return nil
	case !IsClusterUID(t.Cluster):
		return Errorf(Invalid, "%q is not the UID of a cluster", Clean(t.Cluster, 80)).
			WithHint("it is the UID of its namespace kube-system: kubectl get namespace kube-system -o jsonpath={.metadata.uid}")
	case t.User != "" || len(t.Grants) > 0:
		return Errorf(Invalid, "token %s is for the controllers of a cluster: it has no user and no roles", t.Name).
			WithHint("this command shows the rights of a cluster: slipway cluster access")
	case len(t.Namespaces) > 256:
		return Errorf(Invalid, "token %s: at most 256 namespaces are allowed", t.Name).WithHint("leave them out for all")
	}
	for _, n := range t.Namespaces {
		if err := checkField("namespaces", "namespace", n); err != nil {
			return err
		}
	}
	return nil
}
