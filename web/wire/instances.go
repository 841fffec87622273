package wire

import "time"

// Instance is a Slipway server of the database.
type Instance struct {
	Name      string    `json:"name"`
	ID        string    `json:"id" doc:"Of its data directory"`
	Addresses []string  `json:"addresses" doc:"Where machines reach it"`
	Links     []string  `json:"links" doc:"Where other instances reach it"`
	Version   string    `json:"version" doc:"Of its program"`
	StartedAt time.Time `json:"startedAt" doc:"By the clock of the database, like all times here"`
	SeenAt    time.Time `json:"seenAt" doc:"Its last sign of life; with SQLite its start"`
	// Life is as the instance that answers sees it. Unknown is not silent: nobody has watched for long enough.
	Life string `json:"life" enum:"alive,silent,stopped,unknown" doc:"silent: no sign of life for 3 s; stopped: it stopped by itself"`
	// QuietSeconds is by the clock of the instance that answers. It is absent if that one has seen no sign of life.
	QuietSeconds *float64       `json:"quietSeconds,omitempty" doc:"Age of its last sign of life; absent: not known"`
	CutOff       string         `json:"cutOff,omitempty" doc:"Why the instance with the engine does not answer it; its machines wait"`
	CutOffAt     time.Time      `json:"cutOffAt,omitzero" doc:"Since when"`
	IsDrained    bool           `json:"isDrained" doc:"An admin wants it to hold no duty"`
	DrainedAt    time.Time      `json:"drainedAt,omitzero" doc:"Since when"`
	IsLeader     bool           `json:"isLeader" doc:"It has the duty engine: it decides what machines boot, and drives operations"`
	IsThis       bool           `json:"isThis" doc:"It has answered this request: the instance with the engine, also if another one passed the request on"`
	Duties       []InstanceDuty `json:"duties" doc:"The work that only one instance does, and that this one has"`
}

// InstanceDuty is a duty of an instance.
type InstanceDuty struct {
	Name    string    `json:"name" doc:"engine, or network/ and a subnet"`
	Epoch   int64     `json:"epoch" doc:"How often it was taken"`
	SinceAt time.Time `json:"sinceAt"`
	Reason  string    `json:"reason" doc:"Why it was taken"`
	Former  string    `json:"former,omitempty" doc:"The instance that had it before"`
}
