package burn

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"runtime"
	"sync"
	"sync/atomic"

	"slipway.dev/slipway/inventory"
)

// cpu works on all processors: each repeats rounds whose result must be the same every time, on every one of them. The
// expected results come from a first round, which a second one confirms.
func cpu(ctx context.Context) inventory.BurnInTest {
	want := round(0)
	if round(0) != want {
		return inventory.BurnInTest{Detail: "two rounds of the same arithmetic differ"}
	}
	n := runtime.NumCPU()
	var rounds, wrong atomic.Int64
	var crew sync.WaitGroup
	for range n {
		crew.Go(func() {
			// The kernel spreads busy threads over the processors; a thread of its own keeps a worker where it is.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for ctx.Err() == nil {
				if round(0) != want {
					wrong.Add(1)
				}
				rounds.Add(1)
			}
		})
	}
	crew.Wait()
	t := inventory.BurnInTest{Passed: wrong.Load() == 0, Detail: fmt.Sprintf("%d processors, %d rounds, no wrong result", n, rounds.Load())}
	if !t.Passed {
		t.Detail = fmt.Sprintf("%d of %d rounds had a wrong result", wrong.Load(), rounds.Load())
	}
	return t
}

// round is some milliseconds of work on integers, floating point, big numbers and the ciphers' units.
func round(seed uint64) (sum [sha256.Size]byte) {
	h := sha256.New()
	var b [8]byte
	put := func(v uint64) { binary.LittleEndian.PutUint64(b[:], v); h.Write(b[:]) }
	x := seed + 0x9e3779b97f4a7c15
	for range 20_000 { // xorshift, multiply, divide
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		x = x*0xbf58476d1ce4e5b9 + x/(x>>32|1)
		put(x)
	}
	f := 1.0
	for i := 1; i < 20_000; i++ {
		f = math.Sqrt(f*f+1/float64(i)) + math.Sin(float64(i))*1e-3
		put(math.Float64bits(f))
	}
	// 2^k mod p, with a prime of 521 bits: carries through long words.
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 521), big.NewInt(1))
	e := new(big.Int).SetUint64(x)
	e.Lsh(e, 400)
	h.Write(new(big.Int).Exp(big.NewInt(3), e, p).Bytes())
	h.Sum(sum[:0])
	return sum
}
