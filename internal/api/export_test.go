package api

// Statuses has the status of every code, for the tests.
var Statuses = statuses
