#!/bin/bash
echo step 1; sleep 100
