package inventory

import (
	"encoding/json"
	"time"
)

// OperationKind is what an operation does with a host.
type OperationKind string

// The kinds of operations.
const (
	OpInspect   OperationKind = "inspect"   // look at the hardware, and burn it in where asked for
	OpInstall   OperationKind = "install"   // bring a machine's operating system onto its claimed host
	OpReinstall OperationKind = "reinstall" // the same again, with a new claim
	OpRelease   OperationKind = "release"   // fence and wipe a host whose machine goes
	OpClean     OperationKind = "clean"     // wipe a host that nobody has claimed
	OpPower     OperationKind = "power"     // change its power
	OpRemediate OperationKind = "remediate" // get a machine going again: power cycle, reinstall, replace
	OpRotate    OperationKind = "rotate"    // give its BMC account a new password
)

// Operation is one thing that is being done with a host, or was. It is all that the engine needs after a restart: the step,
// the number of tries, and the deadline. A host has one at a time.
type Operation struct {
	ID         string        `json:"id"` // a ULID
	Kind       OperationKind `json:"kind"`
	HostID     HostID        `json:"hostID"`
	Machine    string        `json:"machine,omitempty"` // name
	MachineUID string        `json:"machineUID,omitempty"`
	ClaimID    ClaimID       `json:"claimID,omitempty"`
	Pool       string        `json:"pool,omitempty"` // whose budget it counts against

	Step  Step           `json:"step"`
	State OperationState `json:"state"`
	// Reason says what it waits for or why it ended; Hint what to do about it.
	Reason   string   `json:"reason,omitempty"`
	Hint     string   `json:"hint,omitempty"`
	Refs     []Ref    `json:"-"`              // what Reason and Hint name besides the host, and its machine
	AttemptN int      `json:"attemptN"`       // of this step, from 1
	Task     string   `json:"task,omitempty"` // what the agent was last told to do; its ID is <operation>.<n>
	TaskN    int      `json:"taskN,omitempty"`
	Progress Progress `json:"progress,omitzero"`
	// Params are what the caller wants, Result what came of it; package provision has the types.
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`

	By         string    `json:"by,omitempty"` // who asked
	StartedAt  time.Time `json:"startedAt"`
	GrantedAt  time.Time `json:"grantedAt,omitzero"`  // when the budget allowed it
	StepAt     time.Time `json:"stepAt"`              // when the step began
	DeadlineAt time.Time `json:"deadlineAt,omitzero"` // when this attempt of the step counts as failed
	NextAt     time.Time `json:"nextAt,omitzero"`     // when the engine looks at it again
	UpdatedAt  time.Time `json:"updatedAt"`
	EndedAt    time.Time `json:"endedAt,omitzero"`
	Version    int64     `json:"version"`
}

// OperationState is how an operation is going.
type OperationState string

// The states of an operation.
const (
	OpRunning   OperationState = "running"
	OpWaiting   OperationState = "waiting" // for a hook, a budget, a person: Reason says for which
	OpDone      OperationState = "done"
	OpFailed    OperationState = "failed"
	OpCancelled OperationState = "cancelled"
)

// IsOpen reports whether the operation is still under way.
func (o *Operation) IsOpen() bool { return o.State == OpRunning || o.State == OpWaiting }

// Step is where an operation is. The order of the steps of each kind is in package provision.
type Step string

// The steps.
const (
	StepBudget     Step = "budget"      // waits until the pool allows one more
	StepPreBoot    Step = "pre-boot"    // hooks
	StepPower      Step = "power"       // switched on, or restarted, to boot from the network
	StepNetboot    Step = "netboot"     // until the agent or the installer runs
	StepInspect    Step = "inspect"     // the agent looks at the hardware
	StepBMCUser    Step = "bmc-user"    // the agent makes an account of ours on the controller
	StepBurnIn     Step = "burn-in"     // the agent loads the machine
	StepWrite      Step = "write"       // the agent or the installer writes the operating system
	StepReboot     Step = "reboot"      // into what was written
	StepFirstBoot  Step = "first-boot"  // until that reports up
	StepPostJoin   Step = "post-join"   // hooks
	StepPreDrain   Step = "pre-drain"   // hooks
	StepDrain      Step = "drain"       // the Kubernetes node on it is emptied
	StepPreFence   Step = "pre-fence"   // hooks
	StepFence      Step = "fence"       // until the old operating system cannot run any more
	StepForget     Step = "forget"      // the node's object is deleted in its cluster
	StepPreClean   Step = "pre-clean"   // hooks
	StepWipe       Step = "wipe"        // the agent wipes
	StepPreRelease Step = "pre-release" // hooks
	StepRest       Step = "rest"        // switched off, or left waiting
	StepSet        Step = "set"         // one order to the BMC
)

// Progress is how far the step is, in bytes where that means something.
type Progress struct {
	Detail         string  `json:"detail,omitempty"`
	Bytes          int64   `json:"bytes,omitempty"`
	Total          int64   `json:"total,omitempty"`
	BytesPerSecond float64 `json:"bytesPerSecond,omitempty"`
}

// OperationFilter narrows a list of operations; empty fields do not.
type OperationFilter struct {
	HostID  HostID
	Machine string
	Kind    OperationKind
	IsOpen  bool
}

// Report is the outcome of an inspection, burn-in, installation or wipe. Slipway keeps it permanently; together they are a
// host's acceptance sheet.
type Report struct {
	ID        string          `json:"id"` // of its operation, and a kind: <operation>/<kind>
	HostID    HostID          `json:"hostID"`
	Kind      string          `json:"kind"` // ReportBurnIn, ReportWipe or ReportInstall
	Machine   string          `json:"machine,omitempty"`
	Body      json.RawMessage `json:"body"` // a BurnIn, []WipeCertificate, or what was installed
	CreatedAt time.Time       `json:"createdAt"`
}

// The kinds of reports.
const (
	ReportBurnIn  = "burn-in"
	ReportWipe    = "wipe"
	ReportInstall = "install"
)
