package bench

import "context"

// imageThree compares how fast machines boot an image from three instances, each with its own shaped link, with how fast they do from one.
func imageThree(_ context.Context, e *Env) (f Figure, err error) {
	f = Figure{Name: "image-three", Unit: "MB/s", PeerName: "one-instance"}
	if e.Slipway == "" {
		return f, skipped("compares Slipway with itself")
	}
	if f.Peer, err = e.Instances(1); err != nil {
		return f, err
	}
	f.Ours, err = e.Instances(3)
	return f, err
}
