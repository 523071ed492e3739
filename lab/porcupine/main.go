// Checks that each register of a history is linearizable. `jindou bench replicas faults --history FILE` writes the history: each line
// is an operation. An update writes its value, a read returns it, and a register holds 0 before its first update.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

type operation struct {
	Client, Register int
	Kind             string
	Value            json.Number // null if a read was not answered by one number
	Call, Return     int64
	Outcome          string
}

var model = porcupine.Model{
	Init: func() any { return json.Number("0") },
	Step: func(state, input, _ any) (bool, any) {
		o := input.(operation)
		return o.Kind == "update" || o.Value == state, o.Value
	},
	DescribeOperation: func(o, _ any) string { return fmt.Sprint(o.(operation).Kind, " ", o.(operation).Value) },
}

func read(path string) (all []operation) {
	file, err := os.Open(path)
	exitIf(err)
	decoder := json.NewDecoder(file)
	decoder.DisallowUnknownFields()
	for {
		var o operation
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) && len(all) > 0 {
			return all
		}
		all = append(all, o)
		hasKind := o.Kind == "update" && o.Value != "" || o.Kind == "read"
		hasOutcome := slices.Contains([]string{"ok", "failed", "unknown"}, o.Outcome)
		if err != nil || !hasKind || !hasOutcome || o.Call < 0 || o.Return < o.Call {
			exitIf(fmt.Errorf("%s: no operation in line %d: %v", path, len(all), err))
		}
	}
}

// Makes a read in the middle stale: it returns the value before that of the last update acknowledged before the read.
func plant(all []operation) {
	last := func(register int, before int64) operation {
		found := operation{Value: "0"}
		for _, o := range all {
			if o.Kind == "update" && o.Outcome == "ok" && o.Register == register && o.Return < before && o.Return > found.Return {
				found = o
			}
		}
		return found
	}
	for i := range all {
		o := &all[(i+len(all)/2)%len(all)]
		newest := last(o.Register, o.Call)
		if older := last(o.Register, newest.Call); o.Kind == "read" && o.Outcome == "ok" && older.Value != newest.Value {
			fmt.Printf("planted: client %d reads %s from register %d after %s was acknowledged\n", o.Client, older.Value, o.Register, newest.Value)
			o.Value = older.Value
			return
		}
	}
	exitIf(errors.New("--plant: no read after an update"))
}

// Cuts the history of a register at moments without an open operation, because porcupine's time and memory grow with the square of
// the length. There the register holds the value of its last update, if no other update overlaps that one. The next piece begins with
// that update again.
func cut(history []porcupine.Operation) (pieces [][]porcupine.Operation) {
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	piece, last := []porcupine.Operation{}, porcupine.Operation{}
	allReturned, updatesReturned, isAlone := int64(-1), int64(-1), false
	for _, o := range history {
		if len(piece) >= 500 && o.Call > allReturned && isAlone {
			pieces, piece = append(pieces, piece), []porcupine.Operation{last}
		}
		if o.Input.(operation).Kind == "update" {
			isAlone = o.Call > updatesReturned
			last, updatesReturned = o, max(updatesReturned, o.Return)
		}
		piece, allReturned = append(piece, o), max(allReturned, o.Return)
	}
	return append(pieces, piece)
}

func exitIf(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
}

func main() {
	limit := flag.Duration("limit", 10*time.Minute, "time for each register")
	picture := flag.String("html", "", "draw the last violation in this `file`")
	plants := flag.Bool("plant", false, "make one read stale, which must be rejected")
	flag.Parse()
	all := read(flag.Arg(0))
	if *plants {
		plant(all)
	}
	registers := map[int][]porcupine.Operation{}
	for _, o := range all {
		if o.Outcome == "ok" || o.Outcome == "unknown" && o.Kind == "update" {
			checked := porcupine.Operation{ClientId: o.Client, Input: o, Call: o.Call, Return: o.Return}
			if o.Outcome == "unknown" {
				checked.Return = math.MaxInt64
			}
			registers[o.Register] = append(registers[o.Register], checked)
		}
	}
	words := map[porcupine.CheckResult]string{porcupine.Ok: "linearizable", porcupine.Illegal: "not linearizable", porcupine.Unknown: "unknown"}
	counts, operations := map[porcupine.CheckResult]int{}, 0
	for _, register := range slices.Sorted(maps.Keys(registers)) {
		history, begun, result := registers[register], time.Now(), porcupine.Ok
		for _, piece := range cut(history) {
			if result == porcupine.Ok {
				var info porcupine.LinearizationInfo
				result, info = porcupine.CheckOperationsVerbose(model, piece, max(*limit-time.Since(begun), 1))
				if result == porcupine.Illegal && *picture != "" {
					exitIf(porcupine.VisualizePath(model, info, *picture))
				}
			}
		}
		counts[result]++
		operations += len(history)
		fmt.Printf("register %d: %d operations: %s (%.1f s)\n", register, len(history), words[result], time.Since(begun).Seconds())
	}
	fmt.Printf("%d operations on %d registers: %d linearizable, %d not linearizable, %d unknown\n",
		operations, len(registers), counts[porcupine.Ok], counts[porcupine.Illegal], counts[porcupine.Unknown])
	if counts[porcupine.Ok] < max(len(registers), 1) {
		os.Exit(1)
	}
}
