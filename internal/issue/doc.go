// Package issue takes claims from their callers to a gate. The Issuer gathers them into batches, and the gate decides each batch. Where an answer must
// wait until the coupon is recorded, the Answerer asks the Waiter.
//
// # The queue of a campaign
//
// A queue is idle until a claim arrives. Then a goroutine drains it: it sends the waiting claims to the gate as one batch, in arrival order, while
// the next claims gather. The queue is idle again when no claim waits. So a campaign has one batch in flight, needs no timer, and no goroutine while
// it is idle.
//
// # What a node may answer by itself
//
// A gate's decision carries a lease: how long a node may repeat it. A node repeats a refusal only to users who surely hold no coupon, by the holders
// filter. It repeats a coupon only to the coupon's user. Every lease ends before a change of the campaign begins (Issuer.Change), so no user is
// refused stock that an operator returned.
package issue
