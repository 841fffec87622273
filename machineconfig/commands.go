package machineconfig

import "cmp"

// Command runs something. Shell and Argv exclude each other.
type Command struct {
	Name  string   `yaml:"name,omitempty" json:"name,omitempty"` // key for overriding layers; commands without one add up
	Phase Phase    `yaml:"phase,omitempty" json:"phase,omitempty"`
	Shell string   `yaml:"shell,omitempty" json:"shell,omitempty"` // may be a template
	Argv  []string `yaml:"argv,omitempty" json:"argv,omitempty"`
}

// Phase says when a command runs; first-boot when empty.
type Phase string

// The phases of commands. Within one they run in the order they are written, the wider layer's first.
const (
	FirstBoot     Phase = "first-boot"     // once, on the first boot, before the bootstrapper's activation
	PostBootstrap Phase = "post-bootstrap" // once, after the activation
	EveryBoot     Phase = "every-boot"     // early on every boot
)

// Script runs in an installer, at a stage of the installation. The first that fails ends the installation, unless
// IgnoreErrors is set.
type Script struct {
	Name         string `yaml:"name" json:"name"`
	Stage        Stage  `yaml:"stage" json:"stage"`
	Interpreter  string `yaml:"interpreter,omitempty" json:"interpreter,omitempty"` // /bin/sh when empty
	Text         string `yaml:"text" json:"text"`                                   // a template
	IgnoreErrors bool   `yaml:"ignoreErrors,omitempty" json:"ignoreErrors,omitempty"`
}

// Stage says when a script of the installer runs, and where.
type Stage string

// The stages. Within one, scripts run in the order they are written, the wider layer's first.
const (
	// Early is in the installer, before anything else: %pre, early-commands, preseed/early_command.
	Early Stage = "early"
	// Partitioning is in the installer, right before the disks are partitioned: %pre, early-commands, partman/early_command.
	Partitioning Stage = "partitioning"
	// Chroot is in the installed system: %post, late-commands in the target, late_command in the target.
	Chroot Stage = "chroot"
	// LateStage is in the installer, with the installed system under $SLIPWAY_TARGET: %post --nochroot, late-commands,
	// late_command.
	LateStage Stage = "late"
	// OnError is in the installer, when the installation has failed: %onerror, error-commands.
	OnError Stage = "error"
)

// Stages are all stages.
var Stages = []Stage{Early, Partitioning, Chroot, LateStage, OnError}

// Shell is the script's interpreter.
func (s Script) Shell() string {
	return cmp.Or(s.Interpreter, "/bin/sh")
}
