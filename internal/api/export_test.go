package api

// Statuses are those of all codes, for the tests.
var Statuses = statuses
