// Package wire owns the protocol between our agent and the boot listener: JSON over HTTP, below the URL of one boot
// session. It never reads or writes a socket.
//
// <session> ends with the key of that boot, which only the script that starts the agent has. The agent asks for a Task (GET
// <session>/agent/task?version=N, which waits up to TaskWait), does it, and tells how it goes with Reports (POST
// <session>/agent/report). Tasks are safe to repeat. After a restart of either side, the server gives the same task again,
// by its ID. The agent answers a finished one with the result that it has.
package wire

import (
	"time"

	"slipway.dev/slipway/inventory"
)

// Version is what this build speaks. The server hands out nothing that an older agent would misread: it tells it to
// wait, and opens an issue.
//
//	1  2026-11-21  first
const Version = 1

const (
	// TaskWait is how long the server holds a request for a task while there is none.
	TaskWait = 25 * time.Second
	// ReportEvery is the least time between two progress reports of a task.
	ReportEvery = 2 * time.Second
	// MaxReport bounds a report in bytes.
	MaxReport = 1 << 20
	// MaxZstdWindow bounds the memory that unpacking takes: zstd --long=28. An import refuses what has more.
	MaxZstdWindow = 256 << 20
)

// Kernel arguments that the agent reads.
const (
	ArgServer = "slipway.session" // URL of the boot session with the key of its agent, without a slash at the end
	ArgOther  = "slipway.other"   // URL of the boot listener of another instance, for when ArgServer does not answer; may repeat
	ArgDebug  = "slipway.debug"   // "shell": a shell on the console; only if the admin turned that on
	ArgDriver = "slipway.driver"  // module to load for a class or id: network=ixgbe, 8086:1572=i40e; may repeat
	ArgMAC    = "BOOTIF"          // 01-<mac> of the port it booted from
)

// Kind is the kind of a task.
type Kind string

// The kinds of tasks.
const (
	Wait     Kind = "wait"     // nothing now: ask again after AgainSeconds
	Inspect  Kind = "inspect"  // report Hardware
	BurnIn   Kind = "burn-in"  // load the machine, report BurnIn
	Wipe     Kind = "wipe"     // report Certificates
	Write    Kind = "write"    // write an image to a disk, and what belongs with it
	BMCUser  Kind = "bmc-user" // create an account of the BMC
	Reboot   Kind = "reboot"
	PowerOff Kind = "power-off"
	Kexec    Kind = "kexec" // start a kernel without firmware in between
)

// Task is one thing to do. The field named like its kind holds the rest.
type Task struct {
	ID           string       `json:"id"`
	Kind         Kind         `json:"kind"`
	Reason       string       `json:"reason,omitempty"` // for the console: why
	AgainSeconds int          `json:"againSeconds,omitempty"`
	BurnIn       *BurnInTask  `json:"burnIn,omitempty"`
	Wipe         *WipeTask    `json:"wipe,omitempty"`
	Write        *WriteTask   `json:"write,omitempty"`
	BMCUser      *BMCUserTask `json:"bmcUser,omitempty"`
	Kexec        *KexecTask   `json:"kexec,omitempty"`
}

// BurnInTask loads the machine.
type BurnInTask struct {
	ForSeconds int      `json:"forSeconds"`
	Tests      []string `json:"tests,omitempty"` // of cpu, memory, disk, port; all when empty
	// MayWrite allows disk tests that overwrite; else they only read.
	MayWrite bool `json:"mayWrite,omitempty"`
}

// WipeTask wipes every disk but those kept. A disk that matches a hint of Keep is not touched at all.
type WipeTask struct {
	Mode inventory.CleanMode  `json:"mode"`
	Keep []inventory.DiskHint `json:"keep,omitempty"`
	// MustEmpty makes a disk that cannot be wiped an error; otherwise its certificate says so.
	MustEmpty bool `json:"mustEmpty,omitempty"`
}

// WriteTask writes an operating system.
type WriteTask struct {
	Image ImageFile          `json:"image"`
	Root  inventory.DiskHint `json:"root"`
	// Keep are disks that must not be chosen as root, whatever the hint says.
	Keep []inventory.DiskHint `json:"keep,omitempty"`
	// Seed describes where to write the configuration.
	Seed Seed `json:"seed"`
	// KernelArgs are added to the boot loader's configuration where the agent knows how; empty for most images.
	KernelArgs []string `json:"kernelArgs,omitempty"`
	// BootEntry sets the firmware's boot order: disk first (default), network first, or keep.
	BootEntry string `json:"bootEntry,omitempty"`
	// BootMAC is the port for network boots. With network first, its boot entry stays in front.
	BootMAC inventory.MAC `json:"bootMAC,omitempty"`
	// Resume is what an earlier attempt of this task has confirmed.
	Resume *WriteResult `json:"resume,omitempty"`
}

// The values of WriteTask.BootEntry.
const (
	DiskFirst    = "disk-first"
	NetworkFirst = "network-first"
	KeepOrder    = "keep"
)

// ImageFile is a disk image to be fetched.
type ImageFile struct {
	URL string `json:"url"` // below the session, or of a registry: oci://
	// Elsewhere is the same file at other instances of the server, in the order in which the agent tries them when URL fails.
	Elsewhere []string `json:"elsewhere,omitempty"`
	Digest    string   `json:"digest"` // sha256:<hex> of the file as it is fetched
	SizeBytes int64    `json:"sizeBytes"`
	Format    string   `json:"format"` // raw, raw.gz, raw.zst, raw.xz, qcow2
	// DiskBytes is how large the unpacked image is; 0 when not known.
	DiskBytes int64 `json:"diskBytes,omitempty"`
}

// Seed is a configuration on the disk.
type Seed struct {
	// Kind is nocloud (a file system labelled CIDATA with user-data, meta-data and network-config), ignition (config.ign in
	// the file system labelled boot or OEM), files (below Folder of the root file system), or "" for none.
	Kind string `json:"kind"`
	// Documents are fetched from below the session: name on the disk to URL. Each is fetched once.
	Documents map[string]string `json:"documents,omitempty"`
	// Elsewhere are the same documents at other instances of the server, as in ImageFile.
	Elsewhere map[string][]string `json:"elsewhere,omitempty"`
	Folder    string              `json:"folder,omitempty"`
	// Label overrides the label of the file system that the agent looks for, such as OEM.
	Label string `json:"label,omitempty"`
}

// The kinds of seeds.
const (
	SeedNoCloud  = "nocloud"
	SeedIgnition = "ignition"
	SeedFiles    = "files"
)

// BMCUserTask creates an account of the BMC, in band.
type BMCUserTask struct {
	Name     string `json:"name"`
	Password string `json:"password"`
}

// KexecTask starts a kernel of the root disk that was just written, or of the session.
type KexecTask struct {
	Kernel string   `json:"kernel"` // URL, or a path on the root file system after a Write
	Initrd []string `json:"initrd,omitempty"`
	Args   []string `json:"args,omitempty"`
}

// State is the state of a task.
type State string

// The states of a report.
const (
	Hello   State = "hello"   // the agent has started; Task is ""
	Running State = "running" // progress
	Done    State = "done"
	Failed  State = "failed" // Error and Hint say why
	Log     State = "log"    // lines of the agent's log
)

// The values of Report.Blame.
const (
	BlameImage = "image"
	BlameHost  = "host"
)

// Report is what the agent reports about a task.
type Report struct {
	Version int    `json:"version"`
	Task    string `json:"task,omitempty"`
	State   State  `json:"state"`
	Detail  string `json:"detail,omitempty"` // one line for people: what it is doing
	Error   string `json:"error,omitempty"`
	Hint    string `json:"hint,omitempty"`
	// IsLasting says that another try on this machine cannot succeed: the disk is too small, or the image is damaged.
	IsLasting bool `json:"isLasting,omitempty"`
	// Blame is the cause if it is certain: image or host. If the image is wrong, the machine takes no other host, and
	// its host is not quarantined.
	Blame string `json:"blame,omitempty"`
	Log   string `json:"log,omitempty"`

	Progress     *Progress                   `json:"progress,omitempty"`
	Agent        *AgentInfo                  `json:"agent,omitempty"` // with Hello
	Hardware     *inventory.Hardware         `json:"hardware,omitempty"`
	BurnIn       *inventory.BurnIn           `json:"burnIn,omitempty"`
	Certificates []inventory.WipeCertificate `json:"certificates,omitempty"`
	Write        *WriteResult                `json:"write,omitempty"`
}

// Progress is how far a task is.
type Progress struct {
	Bytes          int64   `json:"bytes"`
	Total          int64   `json:"total,omitempty"`
	BytesPerSecond float64 `json:"bytesPerSecond,omitempty"`
}

// AgentInfo describes the agent.
type AgentInfo struct {
	Build   string          `json:"build"`
	Kernel  string          `json:"kernel"`
	UUID    string          `json:"uuid,omitempty"`
	Serial  string          `json:"serial,omitempty"` // of the machine
	MACs    []inventory.MAC `json:"macs,omitempty"`
	Uptime  float64         `json:"uptime"` // seconds since the kernel started
	IsDebug bool            `json:"isDebug,omitempty"`
}

// WriteResult has the progress of a write, and its result.
type WriteResult struct {
	Disk   inventory.Disk `json:"disk"`
	Digest string         `json:"digest"` // that was confirmed
	// Chain is the documents of a registry that lead to that digest, as they are: its index, if it has one, and its manifest.
	Chain        [][]byte `json:"chain,omitempty"`
	WrittenBytes int64    `json:"writtenBytes"` // to the disk
	SkippedBytes int64    `json:"skippedBytes"` // zeroes that the disk held already, or that the agent discarded
	ReadBytes    int64    `json:"readBytes"`    // of the file
	Seconds      float64  `json:"seconds"`
	IsWritten    bool     `json:"isWritten"` // the image is complete and its digest right
	IsSeeded     bool     `json:"isSeeded"`
	BootEntry    string   `json:"bootEntry,omitempty"` // that was made, such as Boot0004
}
